// Command serve runs one member of an etcd cluster until it is interrupted, or its input ends: so none is left of a
// program that was killed. It prints its endpoint when it is ready.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/millwright-go/millwright/test/etcdlab"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var o etcdlab.Options
	var peers string
	flag.StringVar(&o.Dir, "dir", "", "the `directory` of the data")
	flag.StringVar(&o.Sockets, "sockets", "", "the `directory` of the sockets")
	flag.StringVar(&o.Name, "name", "", "the member's `name`")
	flag.StringVar(&peers, "peers", "", "all members, as `NAME=SOCKET,…`")
	flag.Int64Var(&o.Quota, "quota", 0, "the quota in `bytes`")
	flag.BoolVar(&o.Fast, "fast", false, "do not wait for the disk")
	flag.Parse()
	if peers != "" {
		o.Peers = strings.Split(peers, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	server, err := etcdlab.Start(ctx, o)
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Println(server.Endpoint)
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}
