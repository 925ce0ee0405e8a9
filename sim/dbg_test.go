package sim_test
import ("testing";"fmt";"time"
"github.com/millwright-go/millwright/deployment"
"github.com/millwright-go/millwright/deployment/rollout"
"github.com/millwright-go/millwright/manager"
"github.com/millwright-go/millwright/sim"
"github.com/millwright-go/millwright/store"
"github.com/millwright-go/millwright/object")
func TestDbg(t *testing.T){
	r := &run{t: t}
	r.start(1, sim.Faults{BadUpdate:0.3, DeadUpdate:0.1}, fleet(6, deployment.Strategy{Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 2}}), manager.Hooks{Event: func(k manager.Kind, key object.Key, _ manager.EventType, re, why string){ if r.w!=nil {fmt.Println(r.w.Now().Format("02 15:04:05"), k,key.Name,re,why)}}})
	r.complete()
	r.roll("large")
	fmt.Println(r.w.Until(func() bool { return r.w.Complete("web") }, 3*time.Hour))
 ms,_ := r.w.Machines().List(ctx, store.Query{})
 for _,m := range ms { fmt.Println(m.Name, m.Status.Phase, m.Status.LastOperation, m.Deleted(), m.Spec.InPlace, m.Owner.Name) }
 ss,_ := r.w.Sets().List(ctx, store.Query{})
 for _,m := range ss { fmt.Println(m.Name, m.Spec.Replicas, m.Handover) }
}
