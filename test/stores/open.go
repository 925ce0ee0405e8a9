package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/adapters/etcd"
	"github.com/millwright-go/millwright/adapters/postgres"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/remote"
	"github.com/millwright-go/millwright/test/pglab"
)

// opener returns a function that opens a store, each time the same one, and a function that ends its server.
func opener(ctx context.Context, store, dir string) (open func(context.Context) (opened, error), end func(), err error) {
	switch store {
	case "memory":
		o := manager.InMemory(nil)
		return func(context.Context) (opened, error) { return opened{options: o, close: func() {}}, nil }, func() {}, nil
	case "bolt":
		return func(context.Context) (opened, error) {
			db, err := bolt.Open(filepath.Join(dir, "fleet.db"), bolt.Options{})
			if err != nil {
				return opened{}, err
			}
			return opened{options: db.ManagerOptions(), close: func() { _ = db.Close() }}, nil
		}, func() {}, nil
	case "etcd":
		endpoint, end, err := startEtcd(ctx, dir)
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (opened, error) {
			client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
			if err != nil {
				return opened{}, err
			}
			db, err := etcd.Open(ctx, client, etcd.Options{})
			if err != nil {
				return opened{}, err
			}
			return leading(ctx, db.DB, func() {
				db.Close()
				_ = client.Close()
			})
		}, end, nil
	case "postgres":
		server, err := pglab.New()
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (opened, error) {
			db, err := postgres.Open(ctx, server.URL(), postgres.Options{})
			if err != nil {
				return opened{}, err
			}
			return leading(ctx, db.DB, db.Close)
		}, func() { _ = server.Close() }, nil
	}
	return nil, nil, fmt.Errorf("there is no store %q", store)
}

// leading waits until this process leads. close ends its term.
func leading(ctx context.Context, db *remote.DB, closeAll func()) (opened, error) {
	terms, ended := make(chan *lead.Held), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		ended <- db.Lead(ctx, lead.Options{ID: "bench"}, func(term *lead.Held) error {
			terms <- term
			<-term.Context().Done()
			return nil
		})
	}()
	select {
	case term := <-terms:
		resign := sync.OnceFunc(func() {
			cancel()
			<-ended
		})
		return opened{db.ManagerOptions(term), db, resign, func() {
			resign()
			closeAll()
		}}, nil
	case err := <-ended:
		cancel()
		return opened{}, errors.Join(errors.New("it does not lead"), err)
	}
}

// startEtcd starts an etcd in a process of its own.
func startEtcd(ctx context.Context, dir string) (endpoint string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	server := exec.CommandContext(ctx, self, "-serve", dir)
	server.Stderr = os.Stderr
	if _, err := server.StdinPipe(); err != nil { // the server ends with this process
		return "", nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(errors.New("etcd says nothing"), server.Wait())
	}
	return line[:len(line)-1], func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}, nil
}
