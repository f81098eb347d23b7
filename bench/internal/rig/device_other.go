//go:build !linux

package rig

import (
	"context"
	"errors"
)

// A Device is a block device that is measured; there is none here.
type Device struct{ Node string }

// NewDevice fails.
func NewDevice(context.Context, Kind, string, int64) (*Device, error) {
	return nil, errors.New("devices are made on Linux alone")
}

// Close does nothing.
func (*Device) Close() error { return nil }

// Mounted fails.
func (*Device) Mounted(context.Context, string) error {
	return errors.New("devices are made on Linux alone")
}
