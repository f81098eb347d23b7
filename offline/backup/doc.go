// Package backup keeps the states of a volume that is at rest, and makes volumes of them.
//
// What is kept are the blocks that are in use, with the pages of the tree of codes that count, each compared with its
// code on the way (journal.Snapshot). A first backup has all of them. Each later one has what changed, and adds to the
// one before. What changed the tree of codes tells: a code is a keyed checksum of 128 bits of a page, which has the
// codes of what lies below. So pages with the same code are the same, with all that is below them, and are not looked
// at. A block may have been free and be in use now with the same code: where the bitmap of blocks differs, the blocks
// that it tells of are looked at as well.
//
//	AtRest (fs)  the layout of a volume that nobody has open, with what the log has at home
//	Write        writes a backup to a pipe or a file
//	Folder       backups of one volume, each in a file: Backup adds one, Prune takes some away
//	Chain        a backup with those that it adds to, as a read-only disk
//	Restore      makes a volume of a Chain or a Stream, its superblock last
//	HaveOf       tells what a Folder has, so that Write leaves that out of what is sent to it
//	Receive      takes that in, and keeps what came before an interruption
//	RestoreFiles makes a new volume, of another size, with the files of a Chain
//	Verify       reads all of a file
//
// A file is written once, from its beginning to its end, and has its name when it is durable. What it is, and where its
// parts lie, has SHA-256; each block of the volume has CRC-32C, which tells rot from what is sound, and the tree of
// codes, which tells everything else. docs/design/backup.md has the format.
package backup
