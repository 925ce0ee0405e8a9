package sim

import (
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Fleet returns a deployment, in Namespace, of machines of class "small".
func Fleet(name string, replicas int32, strategy deployment.Strategy) *deployment.Deployment {
	labels := map[string]string{"fleet": name}
	return &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}, Spec: deployment.Spec{
		Replicas: replicas, Selector: object.Selector{Labels: labels}, Strategy: strategy,
		Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
	}}
}

// Pool returns a pool, in Namespace, of machines of class "small" that need nothing
// to boot from.
func Pool(name string, replicas int32) *machinepool.Pool {
	nothing := ""
	return &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}, Spec: machinepool.Spec{
		ClusterName: clusterName, Replicas: &replicas,
		Template: machinepool.Template{Class: machine.ClassRef{Name: "small"}, Bootstrap: machinepool.Bootstrap{DataSecret: &nothing}},
	}}
}
