package manager

import (
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/classes"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/machines"
	"github.com/millwright-go/millwright/manager/pools"
	"github.com/millwright-go/millwright/store"
)

// Cluster is the target cluster that machines join. It is optional: without
// one, a machine's life ends at phase Available.
type Cluster interface {
	// Nodes is the cluster's list of nodes. Nodes have no namespace. The
	// collection must support NodeIndexes.
	Nodes() store.Collection[*machine.Node]
}

// ErrSecretNamespace says that a class refers to a secret in a namespace that
// Options.Classes.SecretNamespaces does not allow. The error around it has the code
// INVALID_ARGUMENT and names class and secret.
var ErrSecretNamespace = secrets.ErrNamespace

// ForeignClasses holds classes of the provider's own, older kinds. They are
// read, and marked once ours have taken their place, never deleted.
type ForeignClasses = classes.ForeignClasses

// ForeignClass is a class of an older kind.
type ForeignClass = classes.ForeignClass

// Tokens makes the bootstrap tokens with which nodes join the cluster.
type Tokens = machines.Tokens

// TokenOwner is the machine or the pool that a token is for.
type TokenOwner = machines.TokenOwner

// Token is what a node shows to join. No way of printing it shows it.
type Token = machines.Token

// PoolBootstrap makes the bootstrap data of pools.
type PoolBootstrap = pools.Bootstrap
