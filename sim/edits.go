package sim

import (
	"fmt"

	"github.com/millwright-go/millwright/deployment"
)

// specChanges returns the differences between two specs, in words.
func specChanges(before, now *deployment.Spec) (out []string) {
	if before.Replicas != now.Replicas {
		out = append(out, machinesInWords(now.Replicas)+" wanted")
	}
	old, new := before.Template, now.Template
	switch {
	case old.Spec.Class != new.Spec.Class:
		out = append(out, "class "+new.Spec.Class.Name+" wanted")
	case !old.Equal(&new):
		out = append(out, "another template wanted")
	}
	if before.Strategy != now.Strategy {
		out = append(out, "strategy changed")
	}
	if before.Paused != now.Paused {
		out = append(out, map[bool]string{true: "paused", false: "resumed"}[now.Paused])
	}
	if before.RollbackTo == nil && now.RollbackTo != nil {
		out = append(out, "rollback asked for")
	}
	if len(out) == 0 {
		out = append(out, "edited")
	}
	return out
}

func machinesInWords(n int32) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprint(n, " machines")
}
