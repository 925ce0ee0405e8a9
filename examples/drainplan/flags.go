package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// safeToEvict is the annotation of the cluster autoscaler.
const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

// options are the values of the flags.
type options struct {
	node   string
	files  []string
	force  bool
	check  bool
	at     time.Time
	heal   time.Duration
	policy *drain.Policy
}

// parse reads the flags. It writes help to out.
func parse(args []string, out io.Writer) (*options, error) {
	o := &options{policy: drain.DefaultPolicy()}
	flags := flag.NewFlagSet("drainplan", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	at := flags.String("at", "", "the `time` of the dump, as 2026-05-04T06:30:00Z (default now)")
	flags.StringVar(&o.node, "node", "", "`name` of the node to drain; not needed where the dump has one node")
	flags.BoolVar(&o.force, "force", false, "show a drain with force")
	flags.BoolVar(&o.check, "check", false, "exit with status 1 if a budget refuses a pod or pods are left")
	flags.DurationVar(&o.heal, "heal", time.Minute, "from a pod's end until its replacement counts as healthy")
	flags.DurationVar(&o.policy.Timeout, "timeout", o.policy.Timeout, "when the drain ends in any case; 0: never")
	flags.IntVar(&o.policy.MaxEvictRetries, "retries", 0, "slots of 20s to evict a pod in, then it is deleted; 0: until the timeout")
	notSafe := flags.Bool("safe-to-evict", false, "heed the annotation "+safeToEvict+": \"false\"")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			help(flags, out)
		}
		return nil, err
	}
	if *notSafe {
		o.policy.Keys.SafeToEvict = []string{safeToEvict}
	}
	o.files = flags.Args()
	o.at = time.Now()
	if *at != "" {
		parsed, err := time.Parse(time.RFC3339, *at)
		if err != nil {
			return nil, fmt.Errorf("-at must be a time such as 2026-05-04T06:30:00Z, not %q", *at)
		}
		o.at = parsed
	}
	switch {
	case len(o.files) == 0:
		return nil, errors.New("name a file with the dump, or - for the standard input")
	case o.heal <= 0:
		return nil, errors.New("-heal must be more than zero")
	case o.policy.Timeout < 0 || o.policy.Timeout > 0 && o.policy.Timeout < time.Second:
		return nil, errors.New("-timeout must be zero or at least a second")
	case o.policy.MaxEvictRetries < 0:
		return nil, errors.New("-retries must not be negative")
	}
	o.policy.Timeout = cmp.Or(o.policy.Timeout, object.Off)
	return o, o.policy.Validate()
}

func help(flags *flag.FlagSet, out io.Writer) {
	_, _ = fmt.Fprintln(out, "usage: drainplan [flags] file...")
	flags.SetOutput(out)
	flags.PrintDefaults()
}

// oneLine returns the text of an error without line breaks, which parsers write, and without control
// characters, which names may have.
func oneLine(err error) string {
	return strings.Join(strings.Fields(codes.Printable(err.Error())), " ")
}
