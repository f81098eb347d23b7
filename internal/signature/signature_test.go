package signature

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// What is found where the formats have their magic numbers.
func TestFind(t *testing.T) {
	const size = 4<<20 + 4096
	put := func(b []byte, at int, text string) { copy(b[(at+size)%size:], text) }
	mbr := func(b []byte) { put(b, 510, "\x55\xaa") }
	for _, x := range []struct {
		want []string
		make func(b []byte)
	}{
		{nil, func([]byte) {}},
		{nil, func(b []byte) {
			for i := range b {
				b[i] = byte(i * i >> 3)
			}
		}},
		{[]string{"a Tansy volume"}, func(b []byte) { put(b, 0, "TansyFS\x00") }},
		{[]string{"a Tansy volume"}, func(b []byte) { put(b, -4096, "TansyFS\x00") }},
		{[]string{"ext2"}, func(b []byte) { put(b, 1080, "\x53\xef") }},
		{[]string{`ext3 "home"`},
			func(b []byte) { put(b, 1080, "\x53\xef"); b[1024+0x5c] = 4; put(b, 1024+0x78, "home\x00rest") }},
		{[]string{"ext4"}, func(b []byte) { put(b, 1080, "\x53\xef"); b[1024+0x5c] = 4; b[1024+0x60] = 0x40 }},
		{[]string{"ext4"}, func(b []byte) { put(b, 1080, "\x53\xef"); b[1024+0x65] = 4; put(b, 1024+0x78, "\x1b[2J") }},
		{[]string{"the journal of an ext4"}, func(b []byte) { put(b, 1080, "\x53\xef"); b[1024+0x60] = 8 }},
		{[]string{`xfs "data"`}, func(b []byte) { put(b, 0, "XFSB"); put(b, 108, "data") }},
		{[]string{`btrfs "b"`}, func(b []byte) { put(b, 0x10040, "_BHRfS_M"); put(b, 0x1012b, "b") }},
		{[]string{"a part of a volume group of LVM2"},
			func(b []byte) { put(b, 512, "LABELONE"); put(b, 512+24, "LVM2 001") }},
		{nil, func(b []byte) { put(b, 512, "LABELONE"); put(b, 512+24, "LVM1 001") }},
		{[]string{"LUKS"}, func(b []byte) { put(b, 0, "LUKS\xba\xbe\x00\x01") }},
		{[]string{`LUKS "secret"`}, func(b []byte) { put(b, 0, "LUKS\xba\xbe\x00\x02"); put(b, 24, "secret") }},
		{[]string{`swap "s"`}, func(b []byte) { put(b, 4086, "SWAPSPACE2"); put(b, 1052, "s") }},
		{[]string{"swap"}, func(b []byte) { put(b, 65526, "SWAPSPACE2") }},
		{[]string{"ntfs"}, func(b []byte) { mbr(b); put(b, 3, "NTFS    ") }},
		{[]string{"exfat"}, func(b []byte) { mbr(b); put(b, 3, "EXFAT   ") }},
		{[]string{`vfat "STICK"`}, func(b []byte) { mbr(b); put(b, 82, "FAT32   "); put(b, 71, "STICK      ") }},
		{[]string{"vfat"}, func(b []byte) { mbr(b); put(b, 54, "FAT16   ") }},
		{[]string{"a part of an array of md (RAID)"}, func(b []byte) { put(b, 4096, "\xfc\x4e\x2b\xa9\x01") }},
		{[]string{"a part of an array of md (RAID)"}, func(b []byte) { put(b, -8192, "\xfc\x4e\x2b\xa9\x01") }},
		{[]string{"a part of an array of md (RAID)"}, func(b []byte) { put(b, 4<<20-65536, "\xfc\x4e\x2b\xa9") }},
		{[]string{"a part of an array of md (RAID)"}, func(b []byte) { put(b, 4<<20-65536, "\xa9\x2b\x4e\xfc") }},
		{[]string{"a part of a pool of ZFS"}, func(b []byte) { put(b, 128<<10+5<<10, "\x0c\xb1\xba") }},
		{[]string{"a part of a pool of ZFS"}, func(b []byte) { put(b, 4<<20-128<<10+4, "\x00\xba\xb1\x0c") }},
		{[]string{"a table of partitions (GPT)"}, func(b []byte) { put(b, 512, "EFI PART") }},
		{[]string{"a table of partitions (GPT)"}, func(b []byte) { put(b, -512, "EFI PART") }},
		{[]string{"an empty table of partitions (MBR)"}, mbr},
		{[]string{"a table of partitions (MBR, 2 in use)"},
			func(b []byte) { mbr(b); b[446], b[450], b[466] = 0x80, 0x83, 0x82 }},
		{nil, func(b []byte) { mbr(b); b[446] = 0x33 }},
		{[]string{"ext2", "a table of partitions (MBR, 1 in use)"},
			func(b []byte) { mbr(b); b[450] = 0x83; put(b, 1080, "\x53\xef") }},
	} {
		b := make([]byte, size)
		x.make(b)
		if got := Find(bytes.NewReader(b), size); !slices.Equal(got, x.want) {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// Whatever the size, nothing but what is there is read.
func TestFindSmall(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 4095, 4096, 8191, 65536, 300 << 10} {
		b := bytes.Repeat([]byte{0xff}, size)
		if got := Find(bytes.NewReader(b), int64(size)); got != nil {
			t.Errorf("in %d bytes there is %q", size, got)
		}
		if got := Find(bytes.NewReader(b[:size/2]), int64(size)); got != nil { // the second half cannot be read
			t.Errorf("in %d bytes there is %q", size, got)
		}
	}
}

// memory reads a device in memory.
type memory struct{ disk.Disk }

func (m memory) ReadAt(b []byte, at int64) (int, error) {
	block := make([]byte, disk.BlockSize)
	n := 0
	for ; n < len(b); n++ {
		if i := (at + int64(n)) % disk.BlockSize; n == 0 || i == 0 {
			if err := m.Disk.ReadAt(uint64(at+int64(n))/disk.BlockSize, [][]byte{block}); err != nil {
				return n, err
			}
		}
		b[n] = block[(at+int64(n))%disk.BlockSize]
	}
	return n, nil
}

// A volume that Mkfs makes is found.
func TestFindVolume(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	if got := Find(memory{d}, 6000*disk.BlockSize); !slices.Equal(got, []string{"a Tansy volume"}) {
		t.Errorf("%q", got)
	}
}

// What the formats' own programs make is found, as far as they are here.
func TestFindMade(t *testing.T) {
	for _, x := range []struct {
		want    string
		command string
	}{
		{`ext2 "l"`, "mkfs.ext2 -q -F -L l"},
		{`ext3 "l"`, "mkfs.ext3 -q -F -L l"},
		{`ext4 "l"`, "mkfs.ext4 -q -F -L l"},
		{`xfs "l"`, "mkfs.xfs -q -f -L l"},
		{`btrfs "l"`, "mkfs.btrfs -q -f -L l"},
		{`vfat "L"`, "mkfs.vfat -n L"},
		{`vfat "L"`, "mkfs.vfat -F 16 -n L"},
		{"ntfs", "mkfs.ntfs -q -F -f"},
		{`swap "l"`, "mkswap -q -L l"},
		{"a table of partitions (GPT)", "sgdisk -n 1 -o"},
		{"LUKS", "cryptsetup luksFormat -q --type luks1 --key-file /bin/true --pbkdf-force-iterations 1000"},
	} {
		words := strings.Fields(x.command)
		program, err := exec.LookPath(words[0])
		if err != nil {
			if program, err = exec.LookPath("/sbin/" + words[0]); err != nil {
				continue
			}
		}
		file := filepath.Join(t.TempDir(), "device")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, 512<<20); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, append(words[1:], file)...).CombinedOutput(); err != nil {
			t.Logf("%s: %v\n%s", x.command, err, out)
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := Find(f, 512<<20); !slices.Contains(got, x.want) {
			t.Errorf("%s: %q, want %s", x.command, got, x.want)
		}
	}
}
