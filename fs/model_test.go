package fs_test

import (
	"testing"

	"tansy/fs"
	"tansy/fs/fstest"
	"tansy/fs/model"
)

// Random operations do to the verified file system what they do to the model.
func TestModel(t *testing.T) {
	clock := fstest.NewClock()
	v := newVolume(t, fs.Options{Clock: clock.Now})
	m := model.New(model.Options{Clock: clock.Now})
	c := fstest.New(m, v, fstest.Options{Seed: seed(t), Clock: clock, Far: true})
	if err := c.Run(*opsFlag); err != nil {
		t.Fatal(err)
	}
}
