// Package etcdlab starts a member of an etcd cluster in this process. Command serve runs one in a process of its own,
// which can be killed.
package etcdlab

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/embed"
)

// Options of Start. Dir is required.
type Options struct {
	// Dir has the data, the log etcd.log, and the sockets if it serves on them.
	Dir string
	// Sockets is a directory with a short path for the unix sockets. Empty: Dir.
	Sockets string
	// Quota is the size of the data from which writes are refused. Zero: 2 GiB.
	Quota int64
	// Name is that of the member. Empty: "one". Peers lists all members of a cluster as NAME=PEER-SOCKET. Nil: it is the
	// only one.
	Name  string
	Peers []string
	// Fast does without waiting for the disk: for tests that lose nothing but the processor.
	Fast bool
}

// Server is a running member.
type Server struct {
	*embed.Etcd
	// Endpoint is for clients.
	Endpoint string
}

// Endpoint returns where a member will serve.
func (o *Options) Endpoint() string { return "unix://" + o.socket(o.name()) }

func (o *Options) name() string {
	if o.Name == "" {
		return "one"
	}
	return o.Name
}

func (o *Options) socket(name string) string {
	dir := o.Sockets
	if dir == "" {
		dir = o.Dir
	}
	return filepath.Join(dir, name+".sock")
}

// Start starts a member, and returns when it is ready. A cluster is ready when most of its members run.
func Start(ctx context.Context, o Options) (*Server, error) {
	c := embed.NewConfig()
	c.Name = o.name()
	c.Dir = filepath.Join(o.Dir, c.Name)
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: o.socket(c.Name)}}
	c.AdvertiseClientUrls = c.ListenClientUrls
	peers := o.Peers
	if len(peers) == 0 {
		peers = []string{c.Name + "=" + o.socket(c.Name+"-peer")}
		c.TickMs, c.ElectionMs = 10, 100 // a single member needs no time to elect a leader
	}
	var cluster []string
	for _, peer := range peers {
		name, socket, _ := strings.Cut(peer, "=")
		cluster = append(cluster, name+"=unix://"+socket)
		if name == c.Name {
			c.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: socket}}
			c.AdvertisePeerUrls = c.ListenPeerUrls
		}
	}
	c.InitialCluster = strings.Join(cluster, ",")
	c.UnsafeNoFsync = o.Fast
	c.QuotaBackendBytes = o.Quota
	c.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // 0 would log every request
	c.LogLevel = "warn"
	c.LogOutputs = []string{filepath.Join(o.Dir, "etcd.log")}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return &Server{e, o.Endpoint()}, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.Close()
	return nil, fmt.Errorf("etcd: %w", err)
}
