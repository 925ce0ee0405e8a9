package lab

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// AtATime is how many parallel tests of a package run at a time. They wait for a server most of the
// time, so there are more than processors.
const AtATime = 8

// Main runs the tests of a package between the start and the end of a server, and returns the
// status to exit with. It calls use before them. AtATime of them run at a time, unless the flag
// -parallel sets another number.
func Main(m *testing.M, use func(*Lab) error, flags ...string) int {
	if err := allow(AtATime); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	l, err := Start(flags...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	status := 1
	if err := use(l); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
	} else {
		status = m.Run()
	}
	if err := l.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return status
}

// allow sets the flag -parallel, unless it is given.
func allow(tests int) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(tests))
}
