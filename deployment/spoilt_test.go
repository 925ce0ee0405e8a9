package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
)

// spoilt gives node templates a label that no API server accepts.
func spoilt(spec *deployment.Spec) {
	spec.Template.Spec.NodeTemplate.Labels = map[string]string{"spoilt": strings.Repeat("x", 70)}
}

func mended(spec *deployment.Spec) { spec.Template.Spec.NodeTemplate.Labels = nil }

// TestInvalidEntriesAreTakenBackFromAllSets: a node template that no API server accepts is pushed amid a
// rollout, and taken back when the set that got it is an old one. A machine of that set that has no VM yet
// waits for a valid template: the set gets one, with any strategy, paused or not.
func TestInvalidEntriesAreTakenBackFromAllSets(t *testing.T) {
	for _, kind := range []deployment.StrategyKind{deployment.InPlaceUpdate, deployment.RollingUpdate, deployment.Recreate} {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s paused %t", kind, paused), func(t *testing.T) {
				d := inPlace(3, 0, 1)
				d.Spec.Strategy.Kind = kind
				s := settled(t, d)
				s.edit(class("large"))
				s.decide()
				s.edit(spoilt)
				s.follow(1)
				require.NotNil(t, s.sets[1].Spec.Template.InvalidEntry())
				s.edit(class("small"))
				s.follow(1)
				for _, set := range s.sets {
					require.NotNil(t, set.Spec.Template.InvalidEntry(), "%s", set.Name)
				}
				s.edit(func(spec *deployment.Spec) { spec.Paused = paused })
				s.edit(mended)
				s.pass(time.Minute)
				s.decide()
				for _, set := range s.sets {
					require.Nil(t, set.Spec.Template.InvalidEntry(), "%s", set.Name)
				}
			})
		}
	}
}
