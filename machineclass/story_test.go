package machineclass_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/object"
)

// reconcile writes a comment into the story, and runs a pass. After a conflict it runs another one.
func (w *world) reconcile(comment string) {
	fmt.Fprintf(w.text, "%-8s -- %s\n", "+"+w.now.Sub(start).String(), comment)
	w.refreshCaches()
	for restart := false; ; restart = true {
		if done, _ := w.pass(restart, nil); done != conflict {
			return
		}
	}
}

// plain returns a class without a finalizer.
func plain() *machine.Class {
	c := &machine.Class{Provider: "blue", ProviderSpec: []byte("s")}
	c.Key, c.Version = key, "0"
	return c
}

// TestStories writes down what is done about a class, one line a decision.
func TestStories(t *testing.T) {
	for name, story := range map[string]func(*world){
		"class is used": func(w *world) {
			w.class = plain()
			w.reconcile("a class that nobody uses")
			w.use(machineclass.HolderDeployment, "web", ours)
			w.use(machineclass.HolderMachine, "a", ours)
			w.reconcile("a deployment and a machine refer to it")
			w.class = deleted(w.class)
			w.reconcile("its owner deletes it")
			w.users = w.users[1:]
			w.reconcile("the deployment is gone")
			w.users = nil
			w.reconcile("and the machine")
		},
		"class is deleted too early": func(w *world) {
			w.class = plain()
			w.class.AddFinalizer("others")
			w.class = deleted(w.class)
			w.use(machineclass.HolderMachine, "a", ours)
			w.reconcile("somebody else's finalizer holds a class that a machine has begun to use")
		},
		"class is not ours to keep": func(w *world) {
			w.policy = machineclass.Policy{}
			w.class = plain()
			w.use(machineclass.HolderSet, "web", blue)
			w.reconcile("neither keeping nor migrating")
		},
		"migration": func(w *world) {
			w.old = &oldClass{ref: blue, size: "s"}
			w.use(machineclass.HolderDeployment, "web", blue)
			w.use(machineclass.HolderMachine, "a", blue)
			w.reconcile("a deployment and a machine refer to an older class")
			w.reconcile("again")
			w.use(machineclass.HolderMachine, "b", blue)
			w.reconcile("a late machine, by the older kind")
			w.old = nil
			w.use(machineclass.HolderMachine, "c", blue)
			w.reconcile("the older class is gone, and another machine refers to it")
			w.use(machineclass.HolderMachine, "d", green)
			w.reconcile("a machine refers to a kind that never was")
		},
		"migration into a class that is there": func(w *world) {
			w.old = &oldClass{ref: blue, size: "m"}
			w.class = plain()
			w.class.ProviderSpec = nil
			w.use(machineclass.HolderMachine, "a", blue)
			w.reconcile("half of the class is there already")
		},
		"migration is not supported": func(w *world) {
			w.old, w.answer = &oldClass{ref: blue, size: "s"}, codes.Unimplemented
			w.use(machineclass.HolderMachine, "a", blue)
			w.reconcile("a driver that migrates nothing")
			w.now = w.now.Add(24 * time.Hour)
			w.reconcile("a day later")
			w.old.version++
			w.reconcile("the older class changes")
		},
		"migration fails": func(w *world) {
			w.old, w.answer = &oldClass{ref: blue, size: "s"}, codes.Internal
			w.use(machineclass.HolderMachine, "a", blue)
			w.reconcile("the driver can't read the older class")
			w.now = w.now.Add(4 * time.Second)
			w.reconcile("too early")
			w.now = w.now.Add(time.Second)
			w.reconcile("it fails again")
			w.answer = codes.OK
			w.now = w.now.Add(10 * time.Second)
			w.reconcile("the driver is mended")
		},
		"migration of two kinds": func(w *world) {
			w.old = &oldClass{ref: blue, size: "s"}
			w.use(machineclass.HolderMachine, "a", blue)
			w.use(machineclass.HolderMachine, "b", green)
			w.reconcile("two older classes of one name")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			story(w)
			testkit.Story(t, name, w.text.String())
		})
	}
}

func deleted(c *machine.Class) *machine.Class {
	c = c.Clone()
	c.DeletedAt = start
	return c
}

// TestSecretStory writes down what is done about a secret.
func TestSecretStory(t *testing.T) {
	policy := &machineclass.Policy{Keep: true}
	var text strings.Builder
	secret := &machine.Secret{Meta: object.Meta{Key: object.Key{Name: "boot"}}, Data: map[string][]byte{"a": []byte("hush")}}
	decide := func(what string, classes int, live bool) {
		o := &machineclass.SecretObservation{Secret: secret, Classes: classes, Read: readIf(live)}
		plan, err := machineclass.DecideSecret(o, policy)
		require.NoError(t, err)
		action := "nothing to do"
		switch {
		case plan.ReadLive:
			action = "read live"
		case plan.Update != nil:
			require.True(t, plan.Update.SpecEqual(secret), "the data stays")
			secret, action = plan.Update, "Update"
		}
		fmt.Fprintf(&text, "-- %s\n%-14s %s\n", what, action, plan.Why)
		if plan.Warn != (decision.Why{}) {
			fmt.Fprintf(&text, "warning: %s\n", plan.Warn)
		}
	}
	decide("no class refers to it", 0, false)
	decide("two classes do", 2, false)
	decide("again", 2, false)
	secret = secret.Clone()
	secret.DeletedAt = start
	decide("its owner deletes it", 1, false)
	decide("the class is gone", 0, false)
	decide("really", 0, true)
	decide("a class refers to it, too late", 1, false)
	policy.Keep = false
	decide("finalizers are not ours to set", 1, false)
	secret = nil
	decide("it is gone", 1, false)
	require.NotContains(t, text.String(), "hush")
	testkit.Story(t, "secret", text.String())
}
