package machine_test

import (
	"time"

	"github.com/millwright-go/millwright/machine"
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
