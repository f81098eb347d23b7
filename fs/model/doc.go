// Package model is a file system in memory: plain maps under one mutex, written
// to be obviously right rather than fast. It is the oracle the verified file
// system is compared with, and the back end of the protocol tests. Nothing in it
// survives the process.
//
// Where RFC 1813 leaves a choice, the choice is written down here; both
// implementations of fs.FileSystem follow this list. "root" is user 0; "now" is
// the clock, or, of a file whose ctime is not before that, the nanosecond after
// its ctime: every change gives a file a later ctime than it ever had.
//
// Order of checks. An operation reports the first of: the handle does not exist
// (STALE; for two handles the first argument first); the directory is not one
// (NOTDIR); the name is not a name; the arguments are impossible (INVAL, FBIG);
// permission (ACCES, PERM); what the directory holds (NOENT, EXIST, ISDIR, ...);
// limits (MLINK, NOSPC). But of an operation that makes an entry the name is
// looked up first, with the right to search: EXIST goes before the missing right
// to write. An operation that fails changes nothing.
//
// Names. Empty, or holding '/' or a zero byte: ACCES. Longer than 255 bytes:
// NAMETOOLONG. "." and "..": found by LOOKUP (".." of the root is the root);
// CREATE, MKDIR, SYMLINK, MKNOD and LINK answer EXIST; REMOVE and RENAME answer
// INVAL; RMDIR answers INVAL for "." and EXIST for "..".
//
// Permissions. The class (owner, group, other) that the caller falls in decides
// alone. Root may do everything, except that ACCESS grants it EXECUTE on a
// non-directory only if some execute bit is set. LOOKUP needs execute on the
// directory; operations that change a directory need write and execute; READDIR
// needs read, and READDIRPLUS gives handles and attributes to those who have
// execute too. The owner may always READ and WRITE data and set the size,
// whatever the mode says, because the client checked when the file was opened;
// READ is also allowed by execute permission (a program is read to be run).
// ACCESS answers by the mode bits alone; to change a directory is to write and
// search it. GETATTR, READLINK, FSSTAT and COMMIT need nothing. In a sticky
// directory (01000) only root, the directory's owner and the file's owner may
// remove, rename or replace an entry (else ACCES).
//
// SETATTR. The guard is compared with ctime first (NOT_SYNC). The mode is masked
// with 07777 and may be set by owner or root (PERM). The owner may be changed by
// root only; the group by root, or by the owner to a group of theirs; setting
// the value it has is allowed to the owner (PERM). The size can be set on a
// regular file only (INVAL), up to MaxSize (FBIG), by whoever may WRITE (ACCES).
// Times given by the client: owner or root (PERM), nanoseconds below 1e9
// (INVAL). The server's time: those and whoever may write (ACCES).
// An owner or group of 2^32-1 is as if it were not set, here and in what makes a file.
// Setting the owner or group of a non-directory clears set-user-ID, and
// set-group-ID if group execute is set. A mode set by a caller who is neither
// root nor in the file's (new) group loses set-group-ID. Setting the size sets
// mtime to now even if the size stays. Any change sets ctime to now; an empty
// SETATTR changes nothing.
//
// READ, WRITE, and COMMIT of what is not a regular file: INVAL. READ does not change
// atime. WRITE of 0 bytes changes nothing; beyond MaxSize: FBIG, nothing is
// stored. Only blocks that the file does not have need room (NOSPC). A WRITE (and
// a change of size) by a caller other than root clears set-user-ID, and
// set-group-ID if group execute is set.
//
// Creation. The owner is the caller and the group the caller's, or the
// directory's if it is set-group-ID; a new directory inherits that bit. The
// attributes given are then applied as by SETATTR of the new owner, except that
// the size counts for CREATE only, and that owner and group count for root
// only: from anybody else they are ignored, and no error. Mode not given: 0644, directories 0755;
// symbolic links always 0777; EXCLUSIVE 0. A device node needs root (PERM);
// its number is below 2^12 and 2^20 (INVAL); MKNOD of a type other than block,
// character, socket, FIFO: BADTYPE. A link's target is 1 to 4095 bytes (INVAL,
// NAMETOOLONG), none of them zero (INVAL).
// UNCHECKED on an existing regular file needs only execute on the directory and
// sets the size, if given, as SETATTR would, and nothing else; on anything else
// it is EXIST. EXCLUSIVE on a regular file that was created with the same
// verifier is a success (the call was sent twice), except that verifier 0 never
// matches.
//
// REMOVE of a directory: ISDIR. RMDIR of something else: NOTDIR; of one that has
// entries: NOTEMPTY. LINK to a directory: INVAL.
//
// Access lists. SetLists is of the owner and root (PERM), of anything but a symbolic link (INVAL), a default list of a
// directory (ACCES). A list without a mask sets the mode alone. A file with a list asks it in place of the mode for
// whoever is neither root nor the owner. What is made in a directory with a default list has that list, and no more
// rights than it gives; a symbolic link has none.
//
// RENAME. Both names of one file: success, nothing changes. Into its own
// subtree: INVAL. Over an existing entry: a directory over a non-directory is
// NOTDIR, the reverse ISDIR, a directory with entries NOTEMPTY. A directory
// moved to another parent must be writable by the caller (ACCES), since its ".."
// changes. The replaced entry keeps its place in the listing.
//
// Time stamps. A change of entries sets mtime and ctime of the directory; a
// change of its link count or its name sets a file's ctime.
//
// Listings start with "." and "..", cookies 1 and 2. Cookies stay valid as long
// as the directory exists; the verifier is 0, another one with a cookie other
// than 0 is BAD_COOKIE. If not even one entry fits: TOOSMALL.
//
// Not specified: Size and Used of a directory, Used of a file with holes, inode
// numbers, generations, cookies from 3 on.
package model
