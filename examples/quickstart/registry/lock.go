package registry

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// retry is the time between two tries for a lock.
const retry = 5 * time.Millisecond

// Lock is a file that this process has locked. The kernel frees it when the process ends, in any
// way. Programs that it starts don't inherit it.
type Lock struct{ file *os.File }

// Release frees the lock. A second call is harmless.
func (l *Lock) Release() { _ = l.file.Close() }

// Remove removes the file and frees the lock. A process that waits for the lock takes it on a new
// file of that name.
func (l *Lock) Remove() error {
	err := os.Remove(l.file.Name())
	l.Release()
	return err
}

// write makes text the file's content.
func (l *Lock) write(text []byte) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt(text, 0)
	return err
}

// Try locks the file of that path, which must exist. It returns ErrHeld if another process has it.
func Try(path string) (*Lock, error) { return tryLock(path, 0) }

// Take is Try, but waits as long as another process has the file.
func Take(ctx context.Context, path string) (*Lock, error) {
	return wait(ctx, func() (*Lock, error) { return Try(path) })
}

// tryLock locks the file of that path. flags may hold os.O_CREATE.
func tryLock(path string, flags int) (*Lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(file); err != nil {
			_ = file.Close()
			return nil, err
		}
		if current(file, path) {
			return &Lock{file}, nil
		}
		_ = file.Close() // it was removed before it was locked
	}
}

func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		}
		return err
	}
}

// current reports whether path still leads to this file.
func current(file *os.File, path string) bool {
	have, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(have, there)
}

// wait tries to take a lock until it is free, or ctx ends.
func wait(ctx context.Context, try func() (*Lock, error)) (*Lock, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lock, err := try()
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if err := Pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Pause waits a moment before the caller looks again.
func Pause(ctx context.Context) error {
	timer := time.NewTimer(retry)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
