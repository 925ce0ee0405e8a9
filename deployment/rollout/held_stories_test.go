package rollout_test

import "github.com/millwright-go/millwright/deployment/rollout"

func resume(s *story) { s.decides = rollout.Step }

// pausedStories only scale, as a paused rollout does.
func pausedStories() []*story {
	return []*story{{
		file: "paused-scale", title: "The template has changed, but rolling is on hold: the old set follows the wanted number.",
		replicas: 3, surge: "1", unavailable: "0", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
		events: map[int]event{
			2: {"scaled to 5", scaleTo(5)},
			4: {"scaled to 0", scaleTo(0)},
			6: {"scaled to 2: of no set in use the new one is taken", scaleTo(2)},
		},
	}, {
		file: "paused-amid-rollout", title: "On hold halfway: growth goes to the new set, a scale-down hits both.",
		replicas: 6, surge: "2", unavailable: "1", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 4), wanted(full("web-2", 3))},
		events: map[int]event{
			2: {"scaled to 9", scaleTo(9)},
			4: {"scaled to 3", scaleTo(3)},
			7: {"resumed", resume},
		},
	}, {
		file: "paused-third-template", title: "On hold with a third template that nothing is made of: growth goes to the newest set in use.",
		replicas: 6, surge: "2", unavailable: "1", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 3), full("web-2", 3), wanted(full("web-3", 0))},
		events: map[int]event{2: {
			"scaled to 8", scaleTo(8),
		}},
	}, {
		file: "paused-saturated", title: "On hold with all new machines there: what is left of the old ones goes.",
		replicas: 3, surge: "1", unavailable: "0", decides: rollout.Resize,
		sets: []rollout.Set{full("web-1", 1), wanted(full("web-2", 3))},
	}}
}

// recreatingStories never have machines of two sets.
func recreatingStories() []*story {
	return []*story{{
		file: "recreate", title: "All old machines go, the last one too, and then the new ones come.",
		replicas: 3, surge: "0", unavailable: "0", decides: rollout.Recreate, lingering: true,
		sets: []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
	}, {
		file: "recreate-third-template", title: "The template changes again before a machine of the second was gone.",
		replicas: 3, surge: "0", unavailable: "0", decides: rollout.Recreate, lingering: true,
		sets: []rollout.Set{full("web-1", 0), wanted(full("web-2", 3))},
		slow: map[string]bool{"web-2": true},
		events: map[int]event{
			2: {"the template changes", func(s *story) { s.want("web-3") }},
			4: {"web-2 removes machines", func(s *story) { s.slow = nil }},
		},
	}, {
		file: "recreate-scaled", title: "Scaled down, to zero and up: the new set alone follows at once, but not while old machines are there.",
		replicas: 4, surge: "0", unavailable: "0", decides: rollout.Recreate, lingering: true,
		sets: []rollout.Set{wanted(full("web-1", 4))},
		events: map[int]event{
			2: {"scaled to 2", scaleTo(2)},
			4: {"the template changes, and none is wanted", func(s *story) { s.want("web-2"); s.replicas = 0 }},
			5: {"scaled to 3", scaleTo(3)},
		},
	}}
}
