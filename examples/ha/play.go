package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/test/etcdlab"
)

// The deployment has 12 machines, and up to 4 more during a rollout.
const (
	replicas    = 12
	surge       = 4
	bootDelay   = 300 * time.Millisecond
	namespace   = "default"
	clusterName = "ha"
	lockFile    = "lock"
)

var (
	deploymentKey = object.Key{Namespace: namespace, Name: "web"}
	secretKey     = object.Key{Namespace: namespace, Name: "join"}
)

// hit is something that happens to a leader.
type hit struct {
	name string
	do   func(*actor)
	// after brings the candidate back when another one leads. Nil: it is gone, and a new one is started.
	after func(*actor)
}

// hits are what happens to leaders. Those that are suspended or cut off go on when the next one has begun.
var hits = []hit{
	{name: "killed", do: func(a *actor) { _ = a.process.Process.Kill() }},
	{
		name:  "suspended",
		do:    func(a *actor) { _ = a.process.Process.Signal(syscall.SIGSTOP) },
		after: func(a *actor) { _ = a.process.Process.Signal(syscall.SIGCONT) },
	},
	{name: "cut off", do: func(a *actor) { a.line.setCut(true) }, after: func(a *actor) { a.line.setCut(false) }},
	{name: "ended", do: func(a *actor) { _ = a.process.Process.Signal(syscall.SIGTERM) }},
}

// result is a line of the table.
type result struct {
	hit      string
	takeover time.Duration
	most     int // machines at a time
	created  int
	doubled  int
	lost     int
}

// theatre is the fleet as the stage sees it.
type theatre struct {
	out       io.Writer
	began     time.Time
	stage     *stage
	db        *fleetStore
	processes *roster.Roster
	counter   *demo.Counter
}

// play is the whole play.
func play(ctx context.Context, o *options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "ha")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	lock, err := roster.Hold(ctx, filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	address := o.store
	if address == "" {
		server, err := etcdlab.Start(ctx, etcdlab.Options{Dir: dir})
		if err != nil {
			return err
		}
		defer server.Close()
		address = "etcd" + server.Endpoint[len("unix"):]
	}
	db, err := openStore(ctx, address)
	if err != nil {
		return err
	}
	defer db.Close()
	t := &theatre{
		out: out, began: time.Now(), db: db, processes: newDriver(dir).Roster(clusterName),
		stage: &stage{dir: dir, address: address, changed: make(chan struct{})},
	}
	t.counter = demo.NewCounter(t.processes, t.isMeant)
	defer func() {
		t.stage.end()
		killed, ended := t.processes.End(context.Background())
		if err == nil && len(killed) > 0 {
			err = fmt.Errorf("%d machines were left", len(killed))
		}
		err = errors.Join(err, ended)
	}()
	background, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	cluster := heartbeat.New(t.processes, db.Nodes(), time.Minute)
	all.Go(func() {
		for background.Err() == nil {
			_ = cluster.Run(background) // a cluster that its store does not answer tries again
		}
	})
	all.Go(func() { _ = t.counter.Run(background) })
	return t.play(ctx, o.rounds)
}

func (t *theatre) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, "%7.2fs  %s\n", time.Since(t.began).Seconds(), fmt.Sprintf(format, args...))
}

// play plays the acts, and prints the table.
func (t *theatre) play(ctx context.Context, rounds int) error {
	if err := t.opening(ctx); err != nil {
		return err
	}
	var results []result
	version := 1
	for range rounds {
		for _, h := range hits {
			version++
			r, err := t.act(ctx, h, version)
			if err != nil {
				return fmt.Errorf("the leader is %s: %w", h.name, err)
			}
			results = append(results, r)
		}
	}
	left, err := t.closing(ctx)
	if err != nil {
		return err
	}
	return t.table(results, left)
}

// opening deploys the fleet, and starts two candidates.
func (t *theatre) opening(ctx context.Context) error {
	if err := deploy(ctx, t.db); err != nil {
		return err
	}
	for range 2 {
		if _, err := t.stage.start(ctx); err != nil {
			return err
		}
	}
	leader, _, err := t.stage.elected(ctx, nil)
	if err != nil {
		return err
	}
	t.say("%s leads", leader.id)
	_, err = store.Await(ctx, t.db.Deployments(), deploymentKey, settled)
	t.say("%d machines are available", replicas)
	return err
}

// act rolls the fleet to a version, and hits the leader when some of the new machines are there.
func (t *theatre) act(ctx context.Context, h hit, version int) (r result, err error) {
	r.hit = h.name
	before, err := t.processes.Entries()
	if err != nil {
		return r, err
	}
	doubled := t.counter.Duplicates()
	t.counter.Begin()
	class := fmt.Sprintf("v%d", version)
	if err := addClass(ctx, t.db, class); err != nil {
		return r, err
	}
	_, err = store.Edit(ctx, t.db.Deployments(), deploymentKey, func(d *deployment.Deployment) error {
		d.Spec.Template.Spec.Class.Name = class
		return nil
	})
	if err != nil {
		return r, err
	}
	if err := t.updated(ctx, surge+1); err != nil {
		return r, err
	}
	leader, _, err := t.stage.elected(ctx, nil) // a slow computer may have made another one
	if err != nil {
		return r, err
	}
	hitAt := time.Now()
	h.do(leader)
	t.say("%s is %s", leader.id, h.name)
	next, at, err := t.stage.elected(ctx, leader)
	if err != nil {
		return r, err
	}
	r.takeover = max(0, at.Sub(hitAt))
	t.say("%s leads after %.1f s", next.id, r.takeover.Seconds())
	if h.after == nil {
		t.stage.remove(leader, syscall.SIGKILL)
		if _, err := t.stage.start(ctx); err != nil {
			return r, err
		}
	} else {
		h.after(leader)
		t.say("%s is back", leader.id)
	}
	if _, err = store.Await(ctx, t.db.Deployments(), deploymentKey, settled); err != nil {
		return r, err
	}
	r.lost, err = t.lost(ctx)
	after, err2 := t.processes.Entries()
	r.created, r.doubled, r.most = len(after)-len(before), t.counter.Duplicates()-doubled, t.counter.Counts().MaxActive
	t.say("all %d machines have version %s", replicas, class)
	return r, errors.Join(err, err2)
}

// updated waits until so many machines are of the new version and available.
func (t *theatre) updated(ctx context.Context, n int32) error {
	_, err := store.Await(ctx, t.db.Deployments(), deploymentKey, func(d *deployment.Deployment) string {
		if d.Status.ObservedGeneration < d.Generation || d.Status.Updated < n {
			return fmt.Sprintf("%d of %d new machines", n-d.Status.Updated, n)
		}
		return ""
	})
	return err
}

// lost returns how many machines have no process, although nobody deletes them.
func (t *theatre) lost(ctx context.Context) (int, error) {
	machines, err := t.db.Machines().Live().List(ctx, store.Query{})
	if err != nil {
		return 0, err
	}
	lost := 0
	for _, m := range machines {
		found, err := t.processes.Living(m.Name, "")
		if err != nil {
			return 0, err
		}
		if found == nil && !m.Deleted() {
			lost++
		}
	}
	return lost, nil
}

// closing deletes the fleet, and returns how many processes it has left. What a late call of an earlier leader made
// after the machine was gone has a while to be found and ended.
func (t *theatre) closing(ctx context.Context) (left int, err error) {
	if err := t.db.Deployments().Delete(ctx, deploymentKey, ""); err != nil {
		return 0, err
	}
	if err := store.AwaitGone(ctx, t.db.Deployments(), deploymentKey); err != nil {
		return 0, err
	}
	t.say("the fleet is deleted")
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		running, err := t.processes.Running()
		if err != nil || len(running) == 0 || within.Err() != nil {
			return len(running), err
		}
		_ = roster.Pause(within)
	}
}

// isMeant reports whether a process has a machine that is not being deleted.
func (t *theatre) isMeant(e roster.Entry) bool {
	m, err := t.db.Machines().Get(context.Background(), object.Key{Namespace: namespace, Name: e.Name})
	return err == nil && !m.Deleted()
}

// table prints what happened. The error says which promise was not kept.
func (t *theatre) table(results []result, left int) error {
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nthe leader is\ttakeover\tcreated\tat most\tdoubled\tlost")
	var all result
	for _, r := range results {
		_, _ = fmt.Fprintf(w, "%s\t%.1f s\t%d\t%d\t%d\t%d\n", r.hit, r.takeover.Seconds(), r.created, r.most, r.doubled, r.lost)
		all.created, all.doubled, all.lost = all.created+r.created, all.doubled+r.doubled, all.lost+r.lost
		all.most = max(all.most, r.most)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(t.out, "\n%d rollouts, %d machines created, %d doubled, %d lost, %d orphans\n",
		len(results), all.created, all.doubled, all.lost, left)
	switch {
	case all.doubled+all.lost+left > 0:
		return errors.New("machines were doubled, lost or left")
	case all.most > replicas+surge:
		return fmt.Errorf("%d machines at a time, and %d were allowed", all.most, replicas+surge)
	}
	return nil
}

// settled says what is missing until all machines are of the version that the deployment asks for.
func settled(d *deployment.Deployment) string {
	s := &d.Status
	if s.ObservedGeneration < d.Generation || s.Updated != replicas || s.Available != replicas || s.Replicas != replicas {
		return fmt.Sprintf("%d machines, %d new, %d available", s.Replicas, s.Updated, s.Available)
	}
	return ""
}

// deploy creates the deployment, and what it refers to.
func deploy(ctx context.Context, db *fleetStore) error {
	_, err := db.Secrets().Create(ctx, &machine.Secret{
		Meta: object.Meta{Key: secretKey}, Data: map[string][]byte{machine.UserData: []byte("<<MACHINE_NAME>>")},
	})
	if err != nil {
		return err
	}
	if err := addClass(ctx, db, "v1"); err != nil {
		return err
	}
	labels := map[string]string{"app": "web"}
	_, err = db.Deployments().Create(ctx, &deployment.Deployment{
		Meta: object.Meta{Key: deploymentKey},
		Spec: deployment.Spec{
			Replicas: replicas,
			Selector: object.Selector{Labels: labels},
			Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "v1"}}},
			Strategy: deployment.Rolling(rollout.IntOrPercent{Value: surge}, rollout.IntOrPercent{}),
		},
	})
	return err
}

// addClass creates the class of a version.
func addClass(ctx context.Context, db *fleetStore, version string) error {
	spec := procdriver.Spec{Cluster: clusterName, Version: version, BootDelay: bootDelay}
	_, err := db.Classes().Create(ctx, &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: namespace, Name: version}},
		Provider: procdriver.Provider, ProviderSpec: spec.Encode(), SecretRef: &secretKey,
	})
	return err
}
