package manager_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// leakyDriver is a driver whose first creation fails with an error that reveals secrets.
type leakyDriver struct {
	driver.Driver
	says    func(*machine.Secret) string
	refused bool
}

func (d *leakyDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if !d.refused {
		d.refused = true
		return nil, codes.New(codes.Unavailable, d.says(req.Secret))
	}
	return d.Driver.CreateMachine(ctx, req)
}

// failCreateOnce runs a machine whose first creation fails. It returns the message that was stored for that, and all
// that was logged, reported and stored.
func failCreateOnce(t *testing.T, w *world, says func(*machine.Secret) string) (message, all string) {
	w.badDriver = &leakyDriver{Driver: w.provider, says: says}
	var log bytes.Buffer
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		effect := o.Hooks.Effect
		o.Hooks.Effect = func(kind manager.Kind, key object.Key, name string, took time.Duration, err error) {
			fmt.Fprintln(&log, name, err)
			effect(kind, key, name, took, err)
		}
		o.Hooks.Pass = func(_ manager.Kind, _ object.Key, _ int, r manager.Result, err error) { fmt.Fprintln(&log, r.Why, err) }
	}
	w.lone()
	p := w.start(&testkit.Fuse{}, false)
	stored := ""
	w.until(p, func() bool {
		m := w.stored()
		stored += fmt.Sprintf("%+v\n", m.Status)
		if m.Status.LastOperation.State == machine.StateFailed {
			message = m.Status.LastOperation.Message
		}
		return m.Status.Phase == machine.PhaseRunning
	}, neverDies(t))
	return message, stored + log.String() + strings.Join(w.events, "\n")
}

// TestCredentialsStayInside: if a driver repeats a class's secret in an error, it is in no log, event, hook or
// object.
// Invariants: P42
func TestCredentialsStayInside(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	boot, err := w.secrets.Get(ctx, object.Key{Namespace: namespace, Name: "boot"})
	require.NoError(t, err)
	boot = boot.Clone()
	boot.Data["password"] = []byte("correct horse")
	_, err = w.secrets.Update(ctx, boot)
	require.NoError(t, err)
	message, all := failCreateOnce(t, w, func(s *machine.Secret) string {
		return fmt.Sprintf("denied: %s and %s in %s", s.Data["password"], base64.StdEncoding.EncodeToString(s.Data["password"]), s.Data[machine.UserData])
	})
	require.Contains(t, message, "denied: [value of password] and [value of password]")
	for _, hidden := range []string{"correct horse", base64.RawStdEncoding.EncodeToString([]byte("correct horse"))} {
		require.NotContains(t, all, hidden)
	}
}

// TestLongMessages: of a long message a bounded part is stored and reported, marked as cut. The whole message is
// logged once, at debug level.
// Invariants: P42
func TestLongMessages(t *testing.T) {
	long := strings.Repeat("€", 7000)
	message, all := failCreateOnce(t, newWorld(t, drivertest.MemoryOptions{}), func(*machine.Secret) string { return long })
	require.Less(t, len(message), codes.MaxMessage+100)
	require.Contains(t, message, "€ … (cut)")
	require.Equal(t, 1, strings.Count(all, long))
	logged := `"level":"DEBUG","msg":"the driver's answer was cut","call":"CreateMachine","machine":"fleet/web","class":"fleet/small","whole":"Unavailable: €`
	require.True(t, strings.Contains(all, logged), "the log does not have it")
}

// TestEventsAreOneLine: neither a provider's message nor a name adds a line to an event.
func TestEventsAreOneLine(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
	require.NoError(t, err)
	class = class.Clone()
	class.CredentialsRef = &object.Key{Name: "cre\x1bdentials"}
	_, err = w.classes.Update(ctx, class)
	require.NoError(t, err)
	message, all := failCreateOnce(t, w, func(*machine.Secret) string { return "<html>\n\x1b[2Jgone" })
	require.Contains(t, message, "<html> \ufffd[2Jgone")
	require.Equal(t, 1, w.countEvents("SecretMissing: class small refers to secret fleet/cre\ufffddentials"))
	require.NotContains(t, all, "\x1b")
}

// TestSecretNamespaces: a class gets no secret of a namespace that is not allowed. Its machines say so, the driver
// is not called, and the secret gets no finalizer.
// Invariants: P42
func TestSecretNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		allowed []string
		refused bool
	}{
		"any": {nil, false}, "its own alone": {[]string{}, true}, "another": {[]string{"third"}, true}, "this one": {[]string{"vault"}, false},
	} {
		w := newWorld(t, drivertest.MemoryOptions{})
		vault := object.Key{Namespace: "vault", Name: "cloud"}
		_, err := w.secrets.Create(ctx, &machine.Secret{Meta: object.Meta{Key: vault}, Data: map[string][]byte{"password": []byte("correct horse")}})
		require.NoError(t, err)
		class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
		require.NoError(t, err)
		class = class.Clone()
		class.CredentialsRef = &vault
		_, err = w.classes.Update(ctx, class)
		require.NoError(t, err)
		w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
			o.Classes.SecretNamespaces, o.Classes.Keep = c.allowed, true
		}
		w.lone()
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.pass(manager.KindSecret, vault))
		if !c.refused {
			w.until(p, func() bool { return w.stored().Status.Phase == machine.PhaseRunning }, neverDies(t))
			continue
		}
		w.round(p)
		m := w.stored()
		require.Equal(t, machine.PhaseCrashLoopBackOff, m.Status.Phase, name)
		require.Equal(t, codes.InvalidArgument, m.Status.LastOperation.Code)
		require.Contains(t, m.Status.LastOperation.Message,
			"class fleet/small refers to secret vault/cloud, and classes may not take secrets from namespace vault")
		require.Zero(t, count(w, codes.CreateMachine)+count(w, codes.GetMachineStatus))
		secret, err := w.secrets.Get(ctx, vault)
		require.NoError(t, err)
		require.Empty(t, secret.Finalizers, name)
	}
}

// TestIncompleteClasses: a class has a part of what autoscalers need. One warning says so, and machines are made
// from it. A class that has none of it is not meant for an autoscaler.
func TestIncompleteClasses(t *testing.T) {
	for _, template := range []*machine.NodeShape{nil, {Architecture: "arm64"}, {Region: "r", Zone: "z"}} {
		w := newWorld(t, drivertest.MemoryOptions{})
		class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
		require.NoError(t, err)
		class = class.Clone()
		class.NodeTemplate = template
		_, err = w.classes.Update(ctx, class)
		require.NoError(t, err)
		w.fleet()
		w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
		want := 0
		if template != nil && template.Region != "" {
			want = 1
		}
		require.Equal(t, want, w.countEvents("NodeTemplateIncomplete: "))
		require.Equal(t, want, w.countEvents("class fleet/small: NodeTemplateIncomplete: class small: the node template has no capacity, instance type"))
	}
}

// TestSecretOfMachinesIsKept: the namespace of a secret is not allowed any more. The secret stays while
// there are machines or pools of the class, because they can't be deleted without it.
func TestSecretOfMachinesIsKept(t *testing.T) {
	vault := object.Key{Namespace: "vault", Name: "cloud"}
	for _, used := range []string{"by a machine", "by a pool", "by nobody"} {
		w := newWorld(t, drivertest.MemoryOptions{})
		in := manager.InMemory(w.now)
		_, err := w.secrets.Create(ctx, &machine.Secret{Meta: object.Meta{Key: vault, Finalizers: []string{machine.SecretFinalizer}}})
		require.NoError(t, err)
		class, err := w.classes.Get(ctx, object.Key{Namespace: namespace, Name: "small"})
		require.NoError(t, err)
		class = class.Clone()
		class.CredentialsRef = &vault
		_, err = w.classes.Update(ctx, class)
		require.NoError(t, err)
		w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
			o.Classes.SecretNamespaces, o.Classes.Keep, o.Store.Pools = []string{}, true, in.Store.Pools
		}
		switch used {
		case "by a machine":
			w.lone()
		case "by a pool":
			_, err := in.Store.Pools.Create(ctx, &machinepool.Pool{
				Meta: object.Meta{Key: fleetKey}, Spec: machinepool.Spec{Template: machinepool.Template{Class: machine.ClassRef{Name: "small"}}},
			})
			require.NoError(t, err)
		}
		p := w.start(&testkit.Fuse{}, false)
		require.NoError(t, p.pass(manager.KindSecret, vault))
		secret, err := w.secrets.Get(ctx, vault)
		require.NoError(t, err)
		require.Equal(t, used != "by nobody", secret.HasFinalizer(machine.SecretFinalizer), used)
	}
}
