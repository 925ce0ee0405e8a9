package drain

import "time"

// PredictBy is Predict with other decisions.
func PredictBy(decide func(*Observation, *Policy, time.Time) (Plan, error), o *Observation, p *Policy, now time.Time) (*Forecast, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return nil, err
	}
	return newSimulation(d, Assumptions{}).run(decide)
}

// ReasonNoProgress is the reason of a forecast whose decisions change nothing.
var ReasonNoProgress = reasonNoProgress
