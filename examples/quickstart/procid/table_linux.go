package procid

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Fields of /proc/<pid>/stat, counted from the one after the command's name.
const (
	fieldState = 0
	fieldFlags = 6
	fieldStart = 19
	fieldCount = 20
)

// exiting is PF_EXITING. It is set before the kernel closes a process's files (and frees its
// locks), while the state is still that of a running process.
const exiting = 0x4

// lookUp reads the process table. The start time is in clock ticks since boot, so it includes a
// part of the boot's own identity.
func lookUp(pid int) (entry, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return entry{}, ErrGone
	}
	if err != nil {
		return entry{}, err
	}
	return parseStat(text)
}

func parseStat(text []byte) (entry, error) {
	// The command's name stands in parentheses and may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < fieldCount {
		return entry{}, fmt.Errorf("unexpected process table entry %q", text)
	}
	flags, err := strconv.ParseUint(string(fields[fieldFlags]), 10, 64)
	if err != nil {
		return entry{}, fmt.Errorf("unexpected process table entry %q", text)
	}
	state := fields[fieldState][0]
	return entry{
		start: string(fields[fieldStart]) + "@" + boot(),
		ended: state == 'Z' || state == 'X' || state == 'x' || flags&exiting != 0,
	}, nil
}

var boot = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 8 {
		return "unknown"
	}
	return string(id[:8])
})
