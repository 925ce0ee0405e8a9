package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/millwright-go/millwright/adapters/etcd"
	"github.com/millwright-go/millwright/adapters/postgres"
	"github.com/millwright-go/millwright/remote"
)

// fleetStore is a fleet in a database, and its connection.
type fleetStore struct {
	*remote.DB
	closeConnection func()
}

// Close closes both.
func (s *fleetStore) Close() {
	s.DB.Close()
	s.closeConnection()
}

// openStore opens the store with an address: that of a database of PostgreSQL, or etcd://HOST:PORT, or etcd:///SOCKET for a
// unix socket, with the prefix of the fleet after "?".
func openStore(ctx context.Context, address string) (*fleetStore, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	switch at.Scheme {
	case "etcd":
		if at.Host == "" {
			return openEtcd(ctx, []string{"unix://" + at.Path}, at.RawQuery)
		}
		return openEtcd(ctx, strings.Split(at.Host, ","), at.RawQuery)
	case "postgres", "postgresql":
		db, err := postgres.Open(ctx, address, postgres.Options{})
		if err != nil {
			return nil, err
		}
		return &fleetStore{db.DB, db.Close}, nil
	}
	return nil, fmt.Errorf("-store: %q is no address of a store", at.Scheme)
}

func openEtcd(ctx context.Context, endpoints []string, prefix string) (*fleetStore, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	db, err := etcd.Open(ctx, client, etcd.Options{Prefix: prefix})
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return &fleetStore{db.DB, func() { _ = client.Close() }}, nil
}
