package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// DefaultLockTimeout is how long Open waits for a file in use by default. A killed process releases
	// the file much sooner.
	DefaultLockTimeout = 5 * time.Second
	// lockInterval is the time between two attempts to lock the file.
	lockInterval = 10 * time.Millisecond
)

// deadline returns the time until which Open waits for the file.
func (o *Options) deadline() time.Time {
	switch {
	case o.LockTimeout == 0:
		return time.Now().Add(DefaultLockTimeout)
	case o.LockTimeout < 0:
		return time.Time{}
	}
	return time.Now().Add(o.LockTimeout)
}

// openLocked opens the file at path and locks it. It waits for the lock until the deadline. The lock
// belongs to the handle. bbolt will lock the handle again, which has no effect.
func openLocked(path string, options *Options) (*os.File, error) {
	deadline := options.deadline()
	for {
		handle, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the caller's path
		if err != nil {
			return nil, err
		}
		err = lock(handle, deadline, options)
		if err == nil {
			err = requireAt(path, handle)
		}
		if err == nil {
			return handle, nil
		}
		_ = handle.Close()
		if !errors.Is(err, ErrReplaced) {
			return nil, err
		}
		// The file was replaced while we waited, so open the new one.
	}
}

// lock locks a file, or returns ErrLocked at the deadline.
func lock(handle *os.File, deadline time.Time, options *Options) error {
	for {
		err := syscall.Flock(int(handle.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("lock: %w", err)
		case !time.Now().Before(deadline):
			return ErrLocked
		}
		if options.waiting != nil {
			options.waiting()
		}
		select {
		case <-options.cancelled:
			return ErrLocked
		case <-time.After(min(lockInterval, time.Until(deadline))):
		}
	}
}

// requireAt returns ErrReplaced if the file at path is not the handle's file, and another error if that
// can't be found out.
func requireAt(path string, handle *os.File) error {
	info, err := handle.Stat()
	if err != nil {
		return err
	}
	return requireSame(path, info)
}

// requireSame is requireAt for the FileInfo of the handle.
func requireSame(path string, info fs.FileInfo) error {
	there, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s does not exist any more", ErrReplaced, path)
	case err != nil:
		return err
	case !os.SameFile(there, info):
		return fmt.Errorf("%w: %s is another file now", ErrReplaced, path)
	}
	return nil
}
