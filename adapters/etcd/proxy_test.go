package etcd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// proxy is the network between a client and a server.
type proxy struct {
	endpoint string

	mu     sync.Mutex
	to     string // the server's endpoint
	links  map[*link]bool
	delay  func() time.Duration
	silent chan struct{} // not nil: nothing gets through until it is closed
	mute   bool          // answers are lost
}

// link is a connection of a client.
type link struct{ client, server net.Conn }

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// newProxy returns a proxy in front of a server.
func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "proxy") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	path := filepath.Join(dir, "p.sock")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	p := &proxy{endpoint: "unix://" + path, to: to, links: make(map[*link]bool), delay: func() time.Duration { return 0 }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.carry(client)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
		p.hear()
		p.cut()
		_ = os.RemoveAll(dir)
	})
	return p
}

// carry links a client with the server, if that is there.
func (p *proxy) carry(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	server, err := net.Dial("unix", strings.TrimPrefix(p.to, "unix://"))
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client, server}
	p.links[l] = true
	go p.copy(l, client, server, false)
	go p.copy(l, server, client, true)
}

// copy carries what one end of a link says to the other one.
func (p *proxy) copy(l *link, from, to net.Conn, answers bool) {
	defer l.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay, silent, mute := p.delay(), p.silent, p.mute
		p.mu.Unlock()
		if delay > 0 {
			<-time.After(delay)
		}
		if silent != nil {
			<-silent
		}
		if answers && mute {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	clear(p.links)
}

// silence lets nothing through any more, on connections that stay open.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// hear ends silence.
func (p *proxy) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
}

// lead leads new connections to another server, and cuts the present ones.
func (p *proxy) lead(to string) {
	p.mu.Lock()
	p.to = to
	p.mu.Unlock()
	p.cut()
}

// dialAll returns a client of several endpoints.
func dialAll(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
