//go:build !linux

package main

var ofLinux []measurement

func beChild() {}
