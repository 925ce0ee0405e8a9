package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/lead"
)

// stage starts candidates and hits them.
type stage struct {
	dir     string
	address string // of the store

	actors []*actor
	number int

	mu      sync.Mutex
	leader  *actor // the candidate that has said last that it leads
	since   time.Time
	changed chan struct{} // closed when there is another leader
}

// actor is a candidate in a process of its own, with a connection to the store that can be cut.
type actor struct {
	id      string
	process *exec.Cmd
	line    *line
	ended   chan struct{}
}

// start starts a candidate.
func (s *stage) start(ctx context.Context) (*actor, error) {
	s.number++
	a := &actor{id: fmt.Sprintf("candidate-%d", s.number), ended: make(chan struct{})}
	var address string
	var err error
	if a.line, address, err = newLine(s.dir, a.id, s.address); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a.process = exec.CommandContext(ctx, self, "-candidate", a.id, "-dir", s.dir, "-store", address)
	a.process.Env = append(os.Environ(), "GOMAXPROCS=1")
	a.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the stage's
	a.process.Stderr = os.Stderr
	said, err := a.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.process.Start(); err != nil {
		return nil, err
	}
	s.actors = append(s.actors, a)
	go func() {
		defer close(a.ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if lead.EventKind(lines.Text()) == lead.Elected {
				s.leads(a)
			}
		}
		_ = a.process.Wait()
	}()
	return a, nil
}

// end kills all candidates that still run.
func (s *stage) end() {
	for _, a := range s.actors {
		_ = a.process.Process.Kill()
		<-a.ended
		a.line.close()
	}
}

// remove ends a candidate with a signal, and forgets it.
func (s *stage) remove(a *actor, with syscall.Signal) {
	_ = a.process.Process.Signal(with)
	<-a.ended
	a.line.close()
}

// line is a connection to the store that can be cut: it passes what comes in on a unix socket on.
type line struct {
	listener net.Listener
	network  string
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newLine opens a line to the store with an address, and returns the address of its near end.
func newLine(dir, id, address string) (*line, string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, "", err
	}
	l := &line{network: "unix", to: at.Path, conns: make(map[net.Conn]bool)}
	near := filepath.Join(dir, id+".sock")
	switch {
	case at.Scheme == "etcd" && at.Host != "":
		l.network, l.to = "tcp", at.Host
		fallthrough
	case at.Scheme == "etcd":
		at.Host, at.Path = "", near
	default: // the socket of PostgreSQL has its port in its name
		port := cmp.Or(at.Port(), "5432")
		query := at.Query()
		if l.to = filepath.Join(query.Get("host"), ".s.PGSQL."+port); query.Get("host") == "" {
			l.network, l.to = "tcp", net.JoinHostPort(at.Hostname(), port)
		}
		near = filepath.Join(dir, id, ".s.PGSQL.5432")
		if err := os.Mkdir(filepath.Dir(near), 0o700); err != nil {
			return nil, "", err
		}
		query.Set("host", filepath.Dir(near))
		at.Host, at.RawQuery = "", query.Encode()
	}
	if l.listener, err = net.Listen("unix", near); err != nil {
		return nil, "", err
	}
	go l.serve()
	return l, at.String(), nil
}

func (l *line) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		far, err := net.Dial(l.network, l.to)
		if err != nil || !l.add(near, far) {
			_ = near.Close()
			continue
		}
		go l.pass(near, far)
		go l.pass(far, near)
	}
}

// add notes a connection. It returns false if the line is cut.
func (l *line) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.cut {
			_ = c.Close()
		}
		l.conns[c] = true
	}
	return !l.cut
}

func (l *line) pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, to)
}

// setCut cuts the line, or mends it.
func (l *line) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for c := range l.conns {
			_ = c.Close()
		}
		clear(l.conns)
	}
}

func (l *line) close() {
	_ = l.listener.Close()
	l.setCut(true)
}

// leads says that a candidate has been elected.
func (s *stage) leads(a *actor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader, s.since = a, time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
}

// elected waits until a candidate other than not leads, and returns since when.
func (s *stage) elected(ctx context.Context, not *actor) (*actor, time.Time, error) {
	for {
		s.mu.Lock()
		leader, since, changed := s.leader, s.since, s.changed
		s.mu.Unlock()
		if leader != nil && leader != not {
			return leader, since, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, time.Time{}, errors.Join(errors.New("nobody leads"), context.Cause(ctx))
		}
	}
}
