// Package bootstrap makes bootstrap tokens for a fleet's machines on a
// Kubernetes API server, for manager.Options.Tokens.
//
// A token is a secret of type bootstrap.kubernetes.io/token in namespace kube-system of the target
// cluster, as kubeadm makes them and as the server's own authenticator
// (--enable-bootstrap-token-auth) reads them. The token's public half, and with it the secret's
// name, follows from the machine's UID, so that a token is found again without any record. The
// secret half is random. Every token has an expiration, so that a leftover token ends by itself:
// the server refuses it from then on, and the controller manager's token cleaner removes it.
//
// All calls are live. The caller needs the permissions get, create, update and delete on secrets in
// kube-system.
package bootstrap
