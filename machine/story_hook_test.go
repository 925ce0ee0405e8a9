package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// holdStories are about hooks that hold a deletion back.
var holdStories = map[string]func(*story){
	"hook before the drain": func(s *story) {
		s.toRunning()
		s.hook("pre-drain.millwright-go/backup", "pre-drain.millwright-go/audit")
		s.doomed()
		s.run()
		s.unhook("pre-drain.millwright-go/audit")
		s.unhook("pre-drain.millwright-go/backup")
	},
	"hook before the VM goes": func(s *story) {
		s.toRunning()
		s.hook("pre-terminate.millwright-go/wipe")
		s.doomed()
		s.run()
		s.unhook("pre-terminate.millwright-go/wipe")
	},
	"hook that nobody takes off": func(s *story) {
		s.toRunning()
		s.hook("pre-drain.millwright-go/forgotten")
		s.doomed()
		s.run()
		s.wait()
	},
	"hook and a deletion by force": func(s *story) {
		s.toRunning()
		s.hook("pre-drain.millwright-go/backup", "pre-terminate.millwright-go/wipe")
		s.doomed()
		s.run()
		s.say("somebody forces it")
		s.force(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
		s.run()
	},
	"hook put on when the drain has begun": func(s *story) {
		s.toRunning()
		s.drains(1, 5*time.Minute, 0)
		s.doomed()
		s.run()
		s.hook("pre-terminate.millwright-go/wipe")
		s.waits(1)
		s.unhook("pre-terminate.millwright-go/wipe")
	},
}

// TestHooksHoldWithoutEnd: with HookTimeout off a hook holds a deletion back for as long as it is there.
func TestHooksHoldWithoutEnd(t *testing.T) {
	for timeout, gone := range map[time.Duration]bool{0: true, object.Off: false} {
		w := newWorld(t)
		w.policy.HookTimeout = timeout
		w.running()
		m := w.store.live().Clone()
		m.Annotations = map[string]string{"pre-terminate.millwright-go/wipe": ""}
		w.store.force(m)
		w.store.remove()
		w.passes(&shell{w: w})
		require.NotEmpty(t, w.provider.vms, "it holds the deletion back")
		w.pass(1000 * time.Hour)
		w.passes(&shell{w: w})
		require.Equal(t, gone, len(w.provider.vms) == 0, "timeout %s", timeout)
	}
}

func (s *story) hook(names ...string) {
	s.say("hooks are put on: %v", names)
	s.force(func(m *machine.Machine) {
		m.Annotations = map[string]string{}
		for _, name := range names {
			m.Annotations[name] = ""
		}
	})
}

func (s *story) unhook(name string) {
	s.say("hook %s is taken off", name)
	s.force(func(m *machine.Machine) { delete(m.Annotations, name) })
	s.run()
}
