package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// stores are the collections of a fleet's objects, one for each kind, on the API server that holds
// them.
type stores struct {
	machines    *apistore.Collection[*machine.Machine, *v1alpha1.Machine]
	sets        *apistore.Collection[*machineset.Set, *v1alpha1.MachineSet]
	deployments *apistore.Collection[*deployment.Deployment, *v1alpha1.MachineDeployment]
	classes     *apistore.Collection[*machine.Class, *v1alpha1.MachineClass]
	secrets     *apistore.Collection[*machine.Secret, *corev1.Secret]
	pools       *poolStore // nil if pools are not read
}

// connection is what the collections of one server have in common.
type connection struct {
	client    rest.Interface
	namespace string
	report    func(error)
	untracked bool // for machines: see apistore.Options.Untracked
}

// newStores returns collections on the server, with one of pools if there is a PoolDriver.
func newStores(config *rest.Config, o *Options, report func(error)) (*stores, error) {
	keys := convert.DefaultKeys()
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		return nil, err
	}
	machineKinds, err := apistore.NewClient(config, v1alpha1.GroupVersion, types)
	if err != nil {
		return nil, err
	}
	core, err := apistore.NewClient(config, corev1.SchemeGroupVersion, scheme.Scheme)
	if err != nil {
		return nil, err
	}
	s := &stores{}
	c := connection{client: machineKinds, namespace: o.Namespace, report: report}
	ofMachines := c
	ofMachines.untracked = !o.TrackFields
	coreKinds := connection{client: core, namespace: o.Namespace, report: report}
	var errs [6]error
	s.machines, errs[0] = collection[*machine.Machine, *v1alpha1.Machine](ofMachines, "machines", convert.Machines(keys), manager.MachineIndexes(),
		func() *v1alpha1.Machine { return &v1alpha1.Machine{} }, func() runtime.Object { return &v1alpha1.MachineList{} })
	s.sets, errs[1] = collection[*machineset.Set, *v1alpha1.MachineSet](c, "machinesets", convert.Sets(keys), manager.SetIndexes(),
		func() *v1alpha1.MachineSet { return &v1alpha1.MachineSet{} }, func() runtime.Object { return &v1alpha1.MachineSetList{} })
	s.deployments, errs[2] = collection[*deployment.Deployment, *v1alpha1.MachineDeployment](c, "machinedeployments", convert.Deployments(keys), manager.DeploymentIndexes(),
		func() *v1alpha1.MachineDeployment { return &v1alpha1.MachineDeployment{} }, func() runtime.Object { return &v1alpha1.MachineDeploymentList{} })
	s.classes, errs[3] = collection[*machine.Class, *v1alpha1.MachineClass](c, "machineclasses", convert.Classes(keys), manager.ClassIndexes(),
		func() *v1alpha1.MachineClass { return &v1alpha1.MachineClass{} }, func() runtime.Object { return &v1alpha1.MachineClassList{} })
	s.secrets, errs[4] = collection[*machine.Secret, *corev1.Secret](coreKinds, "secrets", convert.Secrets(keys), nil,
		func() *corev1.Secret { return &corev1.Secret{} }, func() runtime.Object { return &corev1.SecretList{} })
	if o.PoolDriver != nil {
		errs[5] = s.connectPools(config, c, keys)
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

func collection[T object.Object[T], R apistore.Raw](
	c connection, resource string, codec apistore.Codec[T, R], indexes map[store.Index]func(T) []string,
	blank func() R, blankList func() runtime.Object,
) (*apistore.Collection[T, R], error) {
	return apistore.New(apistore.Options[T, R]{
		Client: c.client, Resource: resource, Namespaced: true, Namespace: c.namespace, NoStatus: resource == "secrets", Untracked: c.untracked,
		Codec: codec, Blank: blank, BlankList: blankList, Indexes: indexes, Report: c.report,
	})
}

// runners returns functions that keep the caches up to date until their context ends.
func (s *stores) runners() []func(context.Context) error {
	all := []func(context.Context) error{s.machines.Run, s.sets.Run, s.deployments.Run, s.classes.Run, s.secrets.Run}
	if s.pools != nil {
		all = append(all, s.pools.Run)
	}
	return all
}

func (s *stores) synced() bool {
	return s.machines.Synced() && s.sets.Synced() && s.deployments.Synced() && s.classes.Synced() && s.secrets.Synced() &&
		(s.pools == nil || s.pools.Synced())
}
