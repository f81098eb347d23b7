package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tansy/disk"
	"tansy/internal/volumeend"
	volrepair "tansy/offline/repair"
)

// undoEnd is the end of the name of an undo file that is not given.
const undoEnd = ".undo"

func repair() (*flagSet, action) {
	f := newFlags("repair", "VOLUME [flags]", `
  tansy repair data.img         say what would be done
  tansy repair data.img --yes   do it; the undo file is data.img.undo
  tansy repair /dev/sdb --yes --undo sdb.undo
                                of a device; the undo file has to be named
  tansy repair data.img --undo-from data.img.undo --yes
                                put back what the repair has overwritten
  tansy repair data.img --forget-lists --yes
                                make room for other access lists (ACLs)

exit codes:
  0  nothing is wrong, or all of it is repaired (or would be, without --yes)
  1  something is left that cannot be repaired, and was left alone
  2  it could not be done: wrong arguments, no superblock, in use, the device
     fails, or the undo file exists or cannot be written; or it could not be
     printed that nothing is left: standard error says what was done then

Before anything is written the old contents of all blocks that change go to the
undo file; keep it until the files were looked at. It holds the secrets of the
superblock. Files that no directory names any more get a name in /lost+found.
Contents of files that are not what was last written are left, and reading them
goes on to fail, unless --accept-damaged is given. The volume must not be in use
by a server. If the superblock is damaged, and the device has grown since the
volume was made, all of it is searched for the copy. This is plain Go, tested,
but not proved.
`)
	yes := f.Bool("yes", false, "do it; without, nothing is written")
	undo := f.String("undo", "", "`FILE` for the old contents (default VOLUME.undo); it must not exist")
	accept := f.Bool("accept-damaged", false, "take contents of files that are not what was last written as they are; "+
		"without, reading them fails")
	forget := f.Bool("forget-lists", false, "take access lists (ACLs) away that no file has: a volume has room for 4,095")
	from := f.String("undo-from", "", "put the old contents in `FILE` back, instead of a repair")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if *from != "" && *undo != "" {
			return misused(f, "--undo and --undo-from contradict each other")
		}
		if *undo == "" && *from == "" && *yes {
			*undo = pos[0] + undoEnd
			if st, err := os.Stat(pos[0]); remote(pos[0]) || err == nil && !st.Mode().IsRegular() {
				return misused(f, "for a device say where the undo file is to go: --undo FILE")
			}
		}
		d, err := openToRepair(pos[0], disk.FileOptions{ReadOnly: !*yes, Warn: warning("repair")})
		if err != nil {
			fail("repair", err)
			return exitUsage
		}
		defer d.Close()
		if *from != "" {
			err = undoRepair(d, *from, *yes)
		} else {
			code, err = repairVolume(d, *undo, *yes, volrepair.Options{AcceptDamaged: *accept, ForgetLists: *forget})
		}
		if err != nil {
			fail("repair", fmt.Errorf("%s: %w", pos[0], err))
			return exitUsage
		}
		return code
	}
}

// undoable returns why no undo file of a repair of a volume can be made under a name.
func undoable(undo, volume string) error {
	if st, err := os.Lstat(undo); err == nil {
		at, _ := os.Stat(undo) // behind links
		v, _ := os.Stat(volume)
		switch {
		case os.SameFile(at, v):
			return fmt.Errorf("--undo %s is the volume itself: give the name of a new file", quoted(undo))
		case !st.Mode().IsRegular():
			return fmt.Errorf("--undo %s is no file: give the name of a new one", quoted(undo))
		}
		return fmt.Errorf("the undo file %s exists: it may be that of another repair: move it away, or give another "+
			"name with --undo", quoted(undo))
	}
	dir := filepath.Dir(undo)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("the undo file %s cannot be made: there is no directory %s", quoted(undo), quoted(dir))
	}
	return nil
}

// openToRepair is openVolume, and searches all of the device for the copy of a superblock that is damaged.
func openToRepair(name string, o disk.FileOptions) (device, error) {
	d, err := openDevice(name, o)
	if err != nil {
		return nil, err
	}
	end, ok := volumeend.Find(d)
	if !ok {
		fmt.Fprintln(os.Stderr, "tansy repair: the superblock cannot be used, and its copy is not where the device ends: "+
			"searching all of the device for it")
		p := newProgress(os.Stderr, time.Now)
		found, lost, ok := volumeend.Search(d, func(done, total uint64) { p.report("searching", done, total) })
		fmt.Fprint(os.Stderr, p.clear)
		if ok {
			end = found
		} else {
			fmt.Fprintf(os.Stderr, "tansy repair: no copy of the superblock of a volume that is there was found "+
				"(%s cannot be read)\n", count(lost, "block", "blocks"))
		}
	}
	return partOf(d, end, o.Warn), nil
}

// undoRepair puts the blocks of an undo file back, with yes.
func undoRepair(d device, from string, yes bool) error {
	u, err := volrepair.LoadUndo(from)
	if err == nil {
		err = u.Check(d)
	}
	if err != nil {
		return err
	}
	if !yes {
		stdout.conclude("%s: %s would get the old contents back; nothing was written: --yes does it",
			shown(d.Path()), count(u.Blocks, "block", "blocks"))
		return nil
	}
	if err := u.Apply(d); err != nil {
		return err
	}
	stdout.conclude("%s: %s back", shown(d.Path()), count(u.Blocks,
		"block has its old contents", "blocks have their old contents"))
	if u.None > 0 {
		stdout.conclude("%s could not be read before the repair: the new contents stay there",
			count(u.None, "block", "blocks"))
	}
	return nil
}

// repairVolume says what a repair does, and with yes does it, and returns the exit code.
func repairVolume(d device, undo string, yes bool, o volrepair.Options) (code int, err error) {
	p, err := volrepair.NewPlan(d, o)
	if err != nil {
		return 0, err
	}
	if p.Before.Clean() && len(p.Actions) == 0 {
		stdout.conclude("%s: clean, nothing to do", shown(d.Path()))
		return exitOK, nil
	}
	if yes && len(p.Actions) > 0 { // before they are listed, which reads as if they were done
		if err := undoable(undo, d.Path()); err != nil {
			return 0, fmt.Errorf("%w; nothing was written", err)
		}
	}
	for _, x := range p.Before.Problems {
		fmt.Fprintln(stdout, "problem:", x)
	}
	if p.Before.Unlisted > 0 {
		fmt.Fprintf(stdout, "problem: %d more\n", p.Before.Unlisted)
	}
	for _, a := range p.Actions {
		fmt.Fprintln(stdout, "repair:", a)
	}
	left := p.After
	if yes && len(p.Actions) > 0 {
		if left, err = p.Apply(d, undo); err != nil {
			if _, e := os.Stat(undo); e == nil {
				err = fmt.Errorf("%w: the repair is not complete; another one goes on, or --undo-from %s puts back what "+
					"was", err, undo)
			}
			return 0, err
		}
	}
	for _, x := range left.Problems {
		fmt.Fprintln(stdout, "left:", x)
	}
	for _, s := range left.Unchecked {
		fmt.Fprintln(stdout, "not checked:", s)
	}
	if left.Damaged > 0 && !o.AcceptDamaged {
		fmt.Fprintf(stdout, "%s what was last written there: reading that fails; --accept-damaged takes it as it is\n",
			count(left.Damaged, "block is not", "blocks are not"))
	}
	n := uint64(len(left.Problems)) + left.Unlisted
	repairs, problems := count(len(p.Actions), "repair", "repairs"), count(n, "problem", "problems")
	switch {
	case len(p.Actions) == 0:
		stdout.conclude("%s: nothing can be done about %s", shown(d.Path()), problems)
	case !yes:
		stdout.conclude("%s: %s, %s would be left; nothing was written: --yes does it",
			shown(d.Path()), repairs, problems)
	default:
		stdout.conclude("%s: %s done, %s left; what was overwritten is in %s",
			shown(d.Path()), repairs, problems, shown(undo))
	}
	if n > 0 {
		return exitFailure, nil
	}
	return exitOK, nil
}
