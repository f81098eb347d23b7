package server_test

import (
	"flag"
	"math/rand"
	"testing"

	"tansy/fs/model"
	"tansy/test/kit/fstest"
)

var seedFlag = flag.Int64("seed", 0, "seed of a test that draws at random, to repeat a failure")

// TestRandom compares a model with another at the other end of a socket: what
// the wire loses or mixes up shows as a difference.
func TestRandom(t *testing.T) {
	for range 8 {
		seed := *seedFlag
		if seed == 0 {
			seed = rand.Int63()
		}
		clock := fstest.NewClock()
		far := model.New(model.Options{Clock: clock.Now})
		near := model.New(model.Options{Clock: clock.Now})
		c := mount(t, start(t, far))
		opt := fstest.Options{Seed: seed, Clock: clock, Far: true}
		if err := fstest.New(near, c, opt).Run(3000); err != nil {
			t.Fatal(err)
		}
	}
}
