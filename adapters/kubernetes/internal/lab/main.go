package lab

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package between the start and the end of a server,
// and returns the status to exit with. use is called before them.
func Main(m *testing.M, use func(*Lab) error, flags ...string) int {
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
