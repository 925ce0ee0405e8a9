package procid

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// These are the kernel's marks of a process that is ending (sys/proc.h).
const (
	zombie  = 5      // SZOMB, in p_stat
	exiting = 0x2000 // P_WEXIT, in p_flag
)

// lookUp reads the process table. The start time is a time of day, which the
// kernel takes once and never adjusts.
func lookUp(pid int) (entry, error) {
	process, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
		return entry{}, ErrGone // an answer of no length: there is no such process
	}
	if err != nil {
		return entry{}, err
	}
	p := &process.Proc
	return entry{
		start: fmt.Sprintf("%d.%06d", p.P_starttime.Sec, p.P_starttime.Usec),
		ended: p.P_stat == zombie || p.P_flag&exiting != 0,
	}, nil
}
