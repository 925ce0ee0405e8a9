// Package bootstrap makes bootstrap tokens for a fleet's machines and pools on a
// Kubernetes API server, for manager.Options.Tokens.
//
// A token is a secret of type bootstrap.kubernetes.io/token in namespace kube-system of the target
// cluster, as kubeadm makes them and as the server's own authenticator
// (--enable-bootstrap-token-auth) reads them. The token's public half, and with it the secret's
// name, follows from the owner's UID, so that a token is found again without any record. The
// secret half is random. Every token has an expiration, so that a leftover token ends by itself:
// the server refuses it from then on, and the controller manager's token cleaner removes it.
//
// All machines of a pool share a token, which is in the user data of the pool's group for as long as the
// group exists. So its secret half is also kept in another secret, millwright-pool-token-ID in
// kube-system: when machines are to join after the token has expired and was removed, the same token
// is created again. The server does not accept a token because of that other secret.
//
// All calls are live. The caller needs the permissions get, create, update and delete on secrets in
// kube-system.
package bootstrap
