package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeTokens writes a file with a token for the administrator and for each user, and returns the tokens.
func writeTokens(o *options) (map[string]string, error) {
	tokens := map[string]string{}
	var csv strings.Builder
	for _, u := range append([]string{"admin:system:masters"}, o.users...) {
		name, groups, _ := strings.Cut(u, ":")
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		tokens[name] = hex.EncodeToString(b)
		fmt.Fprintf(&csv, "%s,%s,%s,%q\n", tokens[name], name, name, groups)
	}
	return tokens, os.WriteFile(filepath.Join(o.dir, "tokens.csv"), []byte(csv.String()), 0o600)
}

// writeServingCerts writes a certificate for 127.0.0.1 and localhost, and a key that signs service account
// tokens. It returns the certificate of the CA, in PEM.
func writeServingCerts(dir string) ([]byte, error) {
	now := time.Now()
	newKey := func(file string) (*ecdsa.PrivateKey, error) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil || file == "" {
			return k, err
		}
		der, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			return nil, err
		}
		b := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
		return k, os.WriteFile(filepath.Join(dir, file), b, 0o600)
	}
	caKey, err := newKey("")
	if err != nil {
		return nil, err
	}
	caT := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubelab-ca"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, caT, caT, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	key, err := newKey("apiserver.key")
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: caT.NotBefore, NotAfter: caT.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, caT, &key.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	crt := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), ca...)
	if err := os.WriteFile(filepath.Join(dir, "apiserver.crt"), crt, 0o600); err != nil {
		return nil, err
	}
	_, err = newKey("sa.key")
	return ca, err
}
