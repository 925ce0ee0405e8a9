// Stores measures a fleet on each store, beside each other: how long it takes until all machines are available, until
// they are rolled to another class with a surge of 10%, and until a new manager acts; how many writes that costs, and
// how much memory and processor time.
//
//	go -C test/stores run . -machines 30000
//	go -C test/stores run . -machines 130000 -stores etcd
//
// The driver answers at once, and machines join no cluster. Each store has a process of its own, as has the server
// of a database, which waits for its disk.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/millwright-go/millwright/test/etcdlab"
)

type options struct {
	machines int
	stores   string
	one      string // the store that this process measures
	serve    string // the directory of the etcd that this process serves
	dir      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options
	flag.IntVar(&o.machines, "machines", 30_000, "how many machines, in deployments of 1,000")
	flag.StringVar(&o.stores, "stores", "memory,bolt,etcd,postgres", "which stores")
	flag.StringVar(&o.one, "one", "", "measure one store; for this program's own use")
	flag.StringVar(&o.dir, "dir", "", "a directory; for this program's own use")
	flag.StringVar(&o.serve, "serve", "", "serve an etcd from a directory; for this program's own use")
	flag.Parse()
	switch {
	case o.serve != "":
		return serve(ctx, o.serve)
	case o.one != "":
		return measureOne(ctx, &o)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "store\tcreated\trolled\tacts again\twrites created\trolled\tCPU created\trolled\tmemory\t")
	for _, store := range strings.Split(o.stores, ",") {
		r, err := inProcess(ctx, store, &o)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", store, err)
			continue
		}
		n := float64(o.machines)
		_, _ = fmt.Fprintf(w, "%s\t%.1f s\t%.1f s\t%.2f s\t%.1f\t%.1f\t%.0f µs\t%.0f µs\t%d MB\t\n", store,
			r.Created.Seconds(), r.Rolled.Seconds(), r.Acts.Seconds(), float64(r.WritesCreated)/n, float64(r.WritesRolled)/n,
			float64(r.CPUCreated.Microseconds())/n, float64(r.CPURolled.Microseconds())/n, r.Memory>>20)
	}
	return w.Flush()
}

// inProcess measures a store in a process of its own.
func inProcess(ctx context.Context, store string, o *options) (r result, err error) {
	dir, err := os.MkdirTemp("", "stores")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	process := exec.CommandContext(ctx, self, "-one", store, "-dir", dir, "-machines", fmt.Sprint(o.machines))
	process.Stderr = os.Stderr
	out, err := process.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

// serve runs an etcd until ctx ends.
func serve(ctx context.Context, dir string) error {
	server, err := etcdlab.Start(ctx, etcdlab.Options{Dir: dir, Quota: 8 << 30})
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Println(server.Endpoint)
	ended := make(chan struct{})
	go func() { // with the process that has started this one
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return nil
}

// result is what was measured.
type result struct {
	Created, Rolled, Acts       time.Duration
	WritesCreated, WritesRolled int64
	CPUCreated, CPURolled       time.Duration // of the manager's process
	Memory                      int64         // the most that the manager's process had
}
