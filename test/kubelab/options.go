package main

import (
	"flag"
	"strings"
	"time"
)

// options are the flags and arguments.
type options struct {
	dir         string
	port        int
	authz       string
	controllers string
	stdin       bool
	timeout     time.Duration
	fsync       bool
	users       userFlag
	server      []string // flags of kube-apiserver
	pods        pods
	nodeGrace   time.Duration
}

// pods are times of the fake kubelet.
type pods struct{ startup, termination, report time.Duration }

// userFlag is a flag that may be given several times.
type userFlag []string

// String implements flag.Value.
func (u *userFlag) String() string { return strings.Join(*u, " ") }

// Set implements flag.Value.
func (u *userFlag) Set(s string) error {
	*u = append(*u, s)
	return nil
}

func readFlags() *options {
	o := &options{}
	flag.StringVar(&o.dir, "dir", "", "state directory (default: a temporary one, removed at exit)")
	flag.IntVar(&o.port, "port", 0, "port on 127.0.0.1 (0: any free one)")
	flag.StringVar(&o.authz, "authorization-mode", "RBAC", "RBAC or AlwaysAllow")
	flag.StringVar(&o.controllers, "controllers", "", "comma-separated: "+strings.Join(controllerNames(), ","))
	flag.BoolVar(&o.stdin, "exit-on-stdin-close", false, "exit when standard input is closed (the parent has gone)")
	flag.DurationVar(&o.timeout, "ready-timeout", 2*time.Minute, "give up when not ready after this long")
	flag.BoolVar(&o.fsync, "fsync", false, "let etcd fsync (off: faster, data does not outlive a power cut)")
	flag.Var(&o.users, "user", "NAME[:GROUP,...] gets a token and DIR/NAME.kubeconfig (repeatable)")
	flag.DurationVar(&o.pods.startup, "pod-startup", 0, "fakekubelet: how long a bound pod stays Pending")
	flag.DurationVar(&o.pods.termination, "pod-termination", 0, "fakekubelet: how long a deleted pod lives on")
	flag.DurationVar(&o.pods.report, "pod-report", 200*time.Millisecond, "fakekubelet: how long the object of a deleted pod stays once it has finished")
	flag.DurationVar(&o.nodeGrace, "node-monitor-grace-period", 40*time.Second, "nodelifecycle: lease silence until Ready=Unknown")
	flag.Parse()
	o.server = flag.Args()
	return o
}
