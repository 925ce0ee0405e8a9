package lab

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// AtATime is how many parallel tests of a package run at a time. It may be more than there are processors,
// because the tests mostly wait for the server.
const AtATime = 8

// Main starts a server, passes it to use, runs the tests of a package, and stops the server. It returns
// the exit status. AtATime tests run at a time, unless the flag -parallel sets another number.
func Main(m *testing.M, use func(*Lab) error, flags ...string) int {
	if err := setParallel(AtATime); err != nil {
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

// setParallel sets the flag -parallel, unless it is on the command line.
func setParallel(tests int) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(tests))
}
