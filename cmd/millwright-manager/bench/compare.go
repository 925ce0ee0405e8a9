package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// contestant is one of the two managers that are compared.
type contestant struct {
	name    string
	program string
	seconds map[string][]float64 // by phase
	// requests are those that the server answered, by phase and then by verb and resource. They include the
	// nodes that VMs register.
	requests map[string]map[string]float64
	busy     []float64 // seconds of processor time, one number for each round
	waves    *timeline // of the last rollout of a small fleet; nil: there was none
}

// compare prints how long the manager of this tree and that of a commit take, as medians of rounds.
func (b *bench) compare(ctx context.Context, commit string, rounds int, sizes ...int) (err error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	both, err := contestants(ctx, folder, commit)
	if err != nil {
		return err
	}
	var phases []phase
	for _, n := range sizes {
		if n > 0 {
			phases = append(phases, b.phases(n)...)
		}
	}
	for round := range rounds {
		for _, c := range both {
			if err := b.live(ctx, c, phases, filepath.Join(folder, fmt.Sprintf("vms-%s-%d", c.name, round))); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	b.printComparison(both[0], both[1], phases, rounds)
	return nil
}

// contestants builds both programs.
func contestants(ctx context.Context, folder, commit string) ([]*contestant, error) {
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	source := filepath.Join(folder, "source")
	if _, err := output(ctx, root, "git", "worktree", "add", "--detach", source, commit); err != nil {
		return nil, err
	}
	both := []*contestant{{name: "this"}, {name: "against"}}
	for i, tree := range []string{root, source} {
		c := both[i]
		c.program = filepath.Join(folder, c.name)
		c.seconds, c.requests = map[string][]float64{}, map[string]map[string]float64{}
		if _, err = output(ctx, filepath.Join(tree, "cmd", "millwright-manager"), "go", "build", "-o", c.program, "."); err != nil {
			break
		}
	}
	_, removed := output(ctx, root, "git", "worktree", "remove", "--force", source)
	return both, errors.Join(err, removed)
}

// output runs a program in a folder and returns what it prints. The error has what it prints to standard
// error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// live runs a manager as a process, and measures each phase with it.
func (b *bench) live(ctx context.Context, c *contestant, phases []phase, vms string) (err error) {
	cmd := exec.Command(c.program,
		"--kubeconfig="+b.server.Kubeconfig("admin"), "--namespace="+namespace, "--no-leader-elect", "--no-pools",
		"--metrics-bind-address=", "--health-bind-address=", "--log-level=error", "--workers=200",
		"--simulated-dir="+vms, "--simulated-create=50ms", "--simulated-boot=500ms", "--simulated-delete=50ms", "--simulated-heartbeat=0s")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		c.busy = append(c.busy, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	}()
	for i := range phases {
		p := &phases[i]
		before, err := b.requests(ctx)
		if err != nil {
			return err
		}
		seconds, err := b.recorded(ctx, c, p)
		if err != nil {
			return err
		}
		after, err := b.requests(ctx)
		if err != nil {
			return err
		}
		c.seconds[p.what] = append(c.seconds[p.what], seconds)
		for name, count := range after {
			if c.requests[p.what] == nil {
				c.requests[p.what] = map[string]float64{}
			}
			c.requests[p.what][name] += count - before[name]
		}
	}
	return nil
}

// recorded is timed. Of the rollout of a small fleet it keeps the timeline; the watches of a large one would cost
// too much of the processors that are measured.
func (b *bench) recorded(ctx context.Context, c *contestant, p *phase) (float64, error) {
	if !p.rolls || p.n > 200 {
		return b.timed(ctx, p)
	}
	t, err := b.follow(ctx)
	if err != nil {
		return 0, err
	}
	defer t.finish()
	c.waves = t
	return b.timed(ctx, p)
}

// requests returns how many requests the server has answered, by verb and resource, without those about
// leases, lists, watches, and reads of deployments, which this program makes.
func (b *bench) requests(ctx context.Context) (map[string]float64, error) {
	text, err := b.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		verb, resource := label(m, "verb"), label(m, "resource")
		if sub := label(m, "subresource"); sub != "" {
			resource += "/" + sub
		}
		switch {
		case verb == "LIST", verb == "WATCH", verb == "GET" && resource == "machinedeployments", resource == "leases", resource == "":
			continue
		}
		counts[verb+" "+resource] += m.GetCounter().GetValue()
	}
	return counts, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// printComparison prints the medians of times, and the requests a machine.
func (b *bench) printComparison(c, other *contestant, phases []phase, rounds int) {
	fmt.Printf("%-28s %8s %8s %8s   medians of %d, in turns\n", "seconds", c.name, other.name, "ratio", rounds)
	line := func(what string, a, b []float64) {
		fmt.Printf("%-28s %8.2f %8.2f %8.2f   %s | %s\n", what, median(a), median(b), median(a)/median(b), list(a), list(b))
	}
	for _, p := range phases {
		line(p.what, c.seconds[p.what], other.seconds[p.what])
	}
	line("processor time of a life", c.busy, other.busy)
	for _, c := range []*contestant{c, other} {
		if c.waves != nil {
			c.waves.print(c.name)
		}
	}
	for _, p := range phases {
		fmt.Printf("\n%-40s %8s %8s   requests a machine\n", p.what, c.name, other.name)
		all := maps.Clone(c.requests[p.what])
		maps.Copy(all, other.requests[p.what])
		for _, name := range slices.Sorted(maps.Keys(all)) {
			each := func(c *contestant) float64 { return c.requests[p.what][name] / float64(rounds*p.n) }
			if each(c) >= 0.01 || each(other) >= 0.01 {
				fmt.Printf("  %-38s %8.2f %8.2f\n", name, each(c), each(other))
			}
		}
	}
}

// list returns numbers in the order in which they were measured.
func list(all []float64) string {
	texts := make([]string, len(all))
	for i, x := range all {
		texts[i] = fmt.Sprintf("%.1f", x)
	}
	return strings.Join(texts, " ")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
