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

// pageName is the page that shows the examples of this package.
const pageName = "../../../docs/how-to/kubernetes.md"

// asProgram is the environment variable that makes this test program run as one of the examples.
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

// section returns the text of a section of the page, up to the next one.
func section(t *testing.T, title string) string {
	t.Helper()
	_, text, found := strings.Cut(page(t), "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// blocks returns the code blocks of the page in a language.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		all = append(all, found[1])
	}
	return all
}

// TestGo: each block of Go on the page is code of this package.
func TestGo(t *testing.T) {
	source, err := os.ReadFile("examples_test.go")
	require.NoError(t, err)
	found := blocks(t, "go")
	require.Len(t, found, 3)
	for _, block := range found {
		require.Contains(t, unindented(string(source)), unindented(block))
	}
}

// unindented returns code without its indentation.
func unindented(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// TestPrograms: the programs of the page print their help, and report invalid settings.
func TestPrograms(t *testing.T) {
	for _, c := range []struct{ program, flag, want string }{
		{"shortest", "--help", "--machine-drain-timeout"},
		{"settings", "--help", "--acme-region"},
		{"settings", "--acme-region=moon", `settings: acme-region: there is no region "moon"`},
	} {
		self, err := os.Executable()
		require.NoError(t, err)
		command := exec.Command(self, c.flag, "--kubeconfig="+server.Kubeconfig("admin"), "--namespace=machines", "--metrics-bind-address=", "--health-bind-address=")
		command.Env = append(os.Environ(), asProgram+"="+c.program)
		text, _ := command.CombinedOutput()
		require.Contains(t, string(text), c.want)
	}
}

// TestCommands runs the commands of the page. They create a fleet and roll it.
func TestCommands(t *testing.T) {
	const namespace = "machines"
	s := newShell(t)
	s.run("kubectl create namespace " + namespace)
	s.run("kubectl config set-context --current --namespace=" + namespace)
	s.run("kubectl create secret generic sample --from-literal=userData='join as <<MACHINE_NAME>>'")
	for _, manifest := range blocks(t, "yaml") {
		if strings.Contains(manifest, "apiVersion: machine.sapcloud.io") {
			s.input = manifest
			s.run("kubectl apply -f -")
		}
	}
	s.input = strings.NewReplacer("name: small", "name: large", "size: s", "size: l").Replace(blocks(t, "yaml")[0])
	s.run("kubectl apply -f -")
	s.manage()
	s.run("kubectl wait machinedeployment web --timeout=1m --for=jsonpath={.status.availableReplicas}=3")
	for _, title := range []string{"Try it", "Day to day"} {
		ran := 0
		for line := range strings.Lines(section(t, title)) {
			if command, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    "); indented && strings.HasPrefix(command, "kubectl ") {
				s.run(command)
				if ran++; strings.Contains(command, "=NewMachineSetAvailable") {
					require.Equal(t, "5", s.run("kubectl get nodes -l node.kubernetes.io/instance-type=l -o name | wc -l"), "the rollout is complete")
				}
			}
		}
		require.GreaterOrEqual(t, ran, 4, title)
	}
	machine := s.run("kubectl get machines -o jsonpath='{.items[0].metadata.name}'")
	inText := regexp.MustCompile("`(kubectl [^`]+)`").FindAllStringSubmatch(section(t, "Day to day"), -1)
	require.GreaterOrEqual(t, len(inText), 9)
	for _, found := range inText {
		command := found[1]
		switch {
		case command == "kubectl rollout":
			continue // the page says that this command does not work
		case !strings.HasPrefix(command, "kubectl get "):
			command = strings.ReplaceAll(command, "NAME", machine) + " --dry-run=server"
		}
		s.run(command)
	}
}

// TestFleetAtRest: the commands of docs/how-to/migrating.md that show machines which change show a machine
// that is being deleted, and not one that is Running.
func TestFleetAtRest(t *testing.T) {
	s := newShell(t)
	s.run("kubectl create namespace rest")
	s.input = `{apiVersion: v1, kind: List, items: [
		{apiVersion: machine.sapcloud.io/v1alpha1, kind: Machine, metadata: {name: terminating, namespace: rest, finalizers: [x.example/one]}},
		{apiVersion: machine.sapcloud.io/v1alpha1, kind: Machine, metadata: {name: running, namespace: rest}}]}`
	s.run("kubectl apply -f -")
	s.run("kubectl -n rest patch mc running --subresource=status --type=merge -p '{\"status\":{\"currentStatus\":{\"phase\":\"Running\"}}}'")
	s.run("kubectl -n rest delete mc terminating --wait=false")
	var commands []string
	for line := range strings.Lines(migrating(t)) {
		if command, shown := strings.CutPrefix(strings.TrimSpace(line), "kubectl -n machines get mc "); shown && strings.HasPrefix(line, "   ") {
			commands = append(commands, "kubectl -n rest get mc "+command)
		}
	}
	require.GreaterOrEqual(t, len(commands), 2)
	for _, command := range commands[:2] {
		found := s.run(command)
		require.Contains(t, found, "terminating")
		require.NotContains(t, found, "running")
	}
	s.run("kubectl -n rest patch mc terminating --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
}

// migrating returns the text of docs/how-to/migrating.md.
func migrating(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/how-to/migrating.md")
	require.NoError(t, err)
	return string(text)
}

// shell runs commands.
type shell struct {
	*testing.T
	input string // for the next command
	env   []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	return &shell{T: t, env: append(os.Environ(),
		"KUBECONFIG="+server.Kubeconfig("admin"), "PATH="+filepath.Dir(server.KubectlPath())+":"+os.Getenv("PATH"), "HOME="+server.Dir)}
}

// run runs a command line, and returns what it prints.
func (s *shell) run(line string) string {
	s.Helper()
	command := exec.CommandContext(s.Context(), "sh", "-c", line)
	command.Env, command.Stdin = s.env, strings.NewReader(s.input)
	s.input = ""
	text, err := command.CombinedOutput()
	require.NoError(s, err, "%s\n%s", line, text)
	return strings.TrimSpace(string(text))
}

// manage runs the example embedded with the simulated provider until the test ends.
func (s *shell) manage() {
	s.Helper()
	nodes, err := kubernetes.NewForConfig(server.Config)
	require.NoError(s, err)
	provider, err := simulated.New(simulated.Options{
		Dir: s.TempDir(), Nodes: nodes, Create: 20 * time.Millisecond, Boot: 100 * time.Millisecond, Delete: 20 * time.Millisecond,
	})
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = provider.Run(ctx) })
	running.Go(func() {
		if err := embedded(ctx, server.Config, metricsserver.Options{BindAddress: "0"}, provider); err != nil {
			s.Error(fmt.Errorf("the manager ended: %w", err))
		}
	})
	s.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// TestFinalizers: the shell function of docs/how-to/migrating.md removes one finalizer, and nothing else.
func TestFinalizers(t *testing.T) {
	_, script, found := strings.Cut(migrating(t), "```sh\n")
	require.True(t, found)
	script, _, _ = strings.Cut(script, "```")
	s := newShell(t)
	s.input = `{apiVersion: v1, kind: List, items: [
		{apiVersion: v1, kind: Node, metadata: {name: a, finalizers: [x.example/one, x.example/two, x.example/three]}},
		{apiVersion: v1, kind: Node, metadata: {name: b, finalizers: [x.example/one]}},
		{apiVersion: v1, kind: Node, metadata: {name: c}},
		{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: default, finalizers: [x.example/two]}}]}`
	s.run("kubectl apply -f -")
	s.run(script + "drop nodes x.example/two\ndrop configmaps x.example/two -n default")
	require.Equal(t, "a[x.example/onex.example/three]\nb[x.example/one]\nc<none>", strings.NewReplacer(" ", "", ",", "").Replace(
		s.run("kubectl get nodes a b c --no-headers -o custom-columns=NAME:.metadata.name,F:.metadata.finalizers")))
	require.Equal(t, "", s.run("kubectl -n default get configmap d -o jsonpath='{.metadata.finalizers}'"))
	s.run(script + "drop nodes x.example/one\ndrop nodes x.example/three\nkubectl delete nodes a b c")
}
