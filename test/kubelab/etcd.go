package main

import (
	"context"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// socket returns the address of etcd.
func socket(tmp string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(tmp, "etcd.sock")}
}

// startEtcd starts etcd in this process, and returns when it is ready.
func startEtcd(ctx context.Context, o *options, tmp string) (*embed.Etcd, error) {
	c := embed.NewConfig()
	c.Dir = filepath.Join(o.dir, "etcd")
	c.ListenClientUrls = []url.URL{socket(tmp)}
	c.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(tmp, "peer.sock")}}
	c.UnsafeNoFsync = !o.fsync
	c.TickMs, c.ElectionMs = 10, 100 // a single member needs no time to elect a leader
	c.QuotaBackendBytes = 4 << 30
	c.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // 0 would log every request
	c.LogLevel = "warn"
	c.LogOutputs = []string{filepath.Join(o.dir, "etcd.log")}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	e.Close()
	return nil, err
}
