package examples_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// pageName is the page whose examples these are.
const pageName = "../../../docs/how-to/kubernetes.md"

// asProgram is a variable that makes this test program one of the examples.
const asProgram = "TEST_AS_PROGRAM"

// server is the API server of the tests here.
var server *lab.Lab

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "shortest":
		shortest(&simulated.Provider{})
	case "settings":
		withSettings()
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(lab.Main(m, func(l *lab.Lab) error {
		server = l
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		return config.Install(ctx, l.Config)
	}, "--controllers=gc,namespace"))
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(pageName)
	require.NoError(t, err)
	return string(text)
}

// section returns a part of the page, without its subsections if it has any.
func section(t *testing.T, title string) string {
	t.Helper()
	_, text, found := strings.Cut(page(t), "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// blocks returns the pieces of the page in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		all = append(all, found[1])
	}
	return all
}

// TestGo: each piece of Go on the page is code of this package.
func TestGo(t *testing.T) {
	source, err := os.ReadFile("examples_test.go")
	require.NoError(t, err)
	pieces := blocks(t, "go")
	require.Len(t, pieces, 3)
	for _, piece := range pieces {
		require.Contains(t, flat(string(source)), flat(piece))
	}
}

// flat returns code without its indentation.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// TestPrograms: the programs of the page start, and report what is wrong with their settings.
func TestPrograms(t *testing.T) {
	for _, c := range []struct{ program, flag, want string }{
		{"shortest", "--help", "--machine-drain-timeout"},
		{"settings", "--help", "--acme-region"},
		{"settings", "--acme-region=moon", `settings: acme-region: there is no region "moon"`},
	} {
		self, err := os.Executable()
		require.NoError(t, err)
		run := exec.Command(self, c.flag, "--kubeconfig="+server.Kubeconfig("admin"), "--namespace=machines", "--metrics-bind-address=", "--health-bind-address=")
		run.Env = append(os.Environ(), asProgram+"="+c.program)
		text, _ := run.CombinedOutput()
		require.Contains(t, string(text), c.want)
	}
}

// TestCommands: a newcomer who types what the page says gets a fleet in a manager, and rolls it.
func TestCommands(t *testing.T) {
	const namespace = "machines"
	p := newPerson(t)
	p.types("kubectl create namespace " + namespace)
	p.types("kubectl config set-context --current --namespace=" + namespace)
	p.types("kubectl create secret generic sample --from-literal=userData='join as <<MACHINE_NAME>>'")
	for _, manifest := range blocks(t, "yaml") {
		if strings.Contains(manifest, "apiVersion: machine.sapcloud.io") {
			p.reads = manifest
			p.types("kubectl apply -f -")
		}
	}
	p.reads = strings.NewReplacer("name: small", "name: large", "size: s", "size: l").Replace(blocks(t, "yaml")[0])
	p.types("kubectl apply -f -")
	p.manage()
	p.types("kubectl wait machinedeployment web --timeout=1m --for=jsonpath={.status.availableReplicas}=3")
	for _, title := range []string{"Try it", "Day to day"} {
		ran := 0
		for line := range strings.Lines(section(t, title)) {
			if command, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    "); indented && strings.HasPrefix(command, "kubectl ") {
				p.types(command)
				if ran++; strings.Contains(command, "=NewMachineSetAvailable") {
					require.Equal(t, "5", p.types("kubectl get nodes -l node.kubernetes.io/instance-type=l -o name | wc -l"), "the rollout is complete")
				}
			}
		}
		require.GreaterOrEqual(t, ran, 4, title)
	}
	machine := p.types("kubectl get machines -o jsonpath='{.items[0].metadata.name}'")
	inText := regexp.MustCompile("`(kubectl [^`]+)`").FindAllStringSubmatch(section(t, "Day to day"), -1)
	require.GreaterOrEqual(t, len(inText), 9)
	for _, found := range inText {
		command := found[1]
		switch {
		case command == "kubectl rollout":
			continue // what does not work
		case !strings.HasPrefix(command, "kubectl get "):
			command = strings.ReplaceAll(command, "NAME", machine) + " --dry-run=server"
		}
		p.types(command)
	}
}

// TestFleetAtRest: the commands of docs/how-to/migrating.md that look for what is under
// way find it.
func TestFleetAtRest(t *testing.T) {
	p := newPerson(t)
	p.types("kubectl create namespace rest")
	p.reads = `{apiVersion: v1, kind: List, items: [
		{apiVersion: machine.sapcloud.io/v1alpha1, kind: Machine, metadata: {name: going, namespace: rest, finalizers: [x.example/one]}},
		{apiVersion: machine.sapcloud.io/v1alpha1, kind: Machine, metadata: {name: staying, namespace: rest}}]}`
	p.types("kubectl apply -f -")
	p.types("kubectl -n rest patch mc staying --subresource=status --type=merge -p '{\"status\":{\"currentStatus\":{\"phase\":\"Running\"}}}'")
	p.types("kubectl -n rest delete mc going --wait=false")
	var commands []string
	for line := range strings.Lines(migrating(t)) {
		if command, shown := strings.CutPrefix(strings.TrimSpace(line), "kubectl -n machines get mc "); shown && strings.HasPrefix(line, "   ") {
			commands = append(commands, "kubectl -n rest get mc "+command)
		}
	}
	require.GreaterOrEqual(t, len(commands), 2)
	for _, command := range commands[:2] {
		found := p.types(command)
		require.Contains(t, found, "going")
		require.NotContains(t, found, "staying")
	}
	p.types("kubectl -n rest patch mc going --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
}

func migrating(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/migrating.md")
	require.NoError(t, err)
	return string(text)
}

// person types commands.
type person struct {
	*testing.T
	reads string // what the next command reads
	env   []string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	return &person{T: t, env: append(os.Environ(),
		"KUBECONFIG="+server.Kubeconfig("admin"), "PATH="+filepath.Dir(server.KubectlPath())+":"+os.Getenv("PATH"), "HOME="+server.Dir)}
}

// types runs a line in a shell and returns what it prints.
func (p *person) types(line string) string {
	p.Helper()
	run := exec.CommandContext(p.Context(), "sh", "-c", line)
	run.Env, run.Stdin = p.env, strings.NewReader(p.reads)
	p.reads = ""
	text, err := run.CombinedOutput()
	require.NoError(p, err, "%s\n%s", line, text)
	return strings.TrimSpace(string(text))
}

// manage runs the example with the simulated provider until the test ends.
func (p *person) manage() {
	p.Helper()
	nodes, err := kubernetes.NewForConfig(server.Config)
	require.NoError(p, err)
	provider, err := simulated.New(simulated.Options{
		Dir: p.TempDir(), Nodes: nodes, Create: 20 * time.Millisecond, Boot: 100 * time.Millisecond, Delete: 20 * time.Millisecond,
	})
	require.NoError(p, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = provider.Run(ctx) })
	running.Go(func() {
		if err := embedded(ctx, server.Config, metricsserver.Options{BindAddress: "0"}, provider); err != nil {
			p.Error(fmt.Errorf("the manager ended: %w", err))
		}
	})
	p.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// TestFinalizers: the function of docs/how-to/migrating.md takes one finalizer off, and
// nothing else.
func TestFinalizers(t *testing.T) {
	_, script, found := strings.Cut(migrating(t), "```sh\n")
	require.True(t, found)
	script, _, _ = strings.Cut(script, "```")
	p := newPerson(t)
	p.reads = `{apiVersion: v1, kind: List, items: [
		{apiVersion: v1, kind: Node, metadata: {name: a, finalizers: [x.example/one, x.example/two, x.example/three]}},
		{apiVersion: v1, kind: Node, metadata: {name: b, finalizers: [x.example/one]}},
		{apiVersion: v1, kind: Node, metadata: {name: c}},
		{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: default, finalizers: [x.example/two]}}]}`
	p.types("kubectl apply -f -")
	p.types(script + "drop nodes x.example/two\ndrop configmaps x.example/two -n default")
	require.Equal(t, "a[x.example/onex.example/three]\nb[x.example/one]\nc<none>", strings.NewReplacer(" ", "", ",", "").Replace(
		p.types("kubectl get nodes a b c --no-headers -o custom-columns=NAME:.metadata.name,F:.metadata.finalizers")))
	require.Equal(t, "", p.types("kubectl -n default get configmap d -o jsonpath='{.metadata.finalizers}'"))
	p.types(script + "drop nodes x.example/one\ndrop nodes x.example/three\nkubectl delete nodes a b c")
}
