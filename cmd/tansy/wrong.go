package main

import (
	"regexp"
	"time"
)

// What package flag says of arguments that it does not understand. It writes flags with one hyphen, and not what a
// value may be.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	wrongValue  = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^ ]*): (.*)$`)
)

// wrongFlag says it as the flags are written everywhere else.
func wrongFlag(f *flagSet, err error) string {
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		return "there is no flag --" + m[1]
	}
	if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		x := f.Lookup(m[1])
		value, _ := describe(x)
		return spelled(x) + " needs a value: " + value
	}
	if m := wrongValue.FindStringSubmatch(err.Error()); m != nil {
		x := f.Lookup(m[2])
		why := m[3]
		switch value, _ := describe(x); {
		case why != "parse error" && why != "value out of range":
		case isDuration(x.Value):
			why = "give a time with its unit, such as 500ms, 90s, 10m or 24h"
		case value == "":
			why = "it takes no value but true or false"
		default:
			why = "give a whole number that is not too large"
		}
		return spelled(x) + " " + m[1] + ": " + why
	}
	return err.Error()
}

// isDuration tells whether the value of a flag is one.
func isDuration(v any) bool {
	g, ok := v.(interface{ Get() any })
	if !ok {
		return false
	}
	_, ok = g.Get().(time.Duration)
	return ok
}
