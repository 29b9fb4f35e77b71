// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// kubeadmFlags are those of the static Pod that kubeadm 1.37 makes of
// kube-controller-manager, in its order, for a cluster with --pod-network-cidr.
// Source: k8s.io/kubernetes/cmd/kubeadm/app/phases/controlplane, getControllerManagerCommand.
func kubeadmFlags(kubeconfig, ca, caKey, frontProxyCA, serviceAccountKey string) []string {
	return []string{
		"--allocate-node-cidrs=true",
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--client-ca-file=" + ca,
		"--cluster-cidr=10.244.0.0/16",
		"--cluster-name=kubernetes",
		"--cluster-signing-cert-file=" + ca,
		"--cluster-signing-key-file=" + caKey,
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=true",
		"--requestheader-client-ca-file=" + frontProxyCA,
		"--root-ca-file=" + ca,
		"--service-account-private-key-file=" + serviceAccountKey,
		"--service-cluster-ip-range=10.96.0.0/12",
		"--use-service-account-credentials=true",
	}
}

// said is what a command says, which may be read while it does.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// clientCertificate is of the authority of a cluster, as PEM files.
func clientCertificate(t *testing.T, caFile, caKeyFile string, who pkix.Name) (certFile, keyFile string) {
	t.Helper()
	ca, err := tls.LoadX509KeyPair(caFile, caKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: who, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: raw}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// The process is who kubeadm says it is, with the rights that every API server gives to it
// and to the accounts of its controllers, and no others.
func TestTheManifestOfKubeadmRunsAsItIs(t *testing.T) {
	t.Parallel()
	cluster := controlplanetest.Start(t, controlplanetest.Options{Nodes: 1, Bare: true})
	files := cluster.Endpoints()
	certFile, keyFile := clientCertificate(t, files.CAFile, files.CAKeyFile, pkix.Name{CommonName: "system:kube-controller-manager"})
	kubeconfig := filepath.Join(t.TempDir(), "controller-manager.conf")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: u, user: {client-certificate: %q, client-key: %q}}]\n",
		cluster.Config.Host, files.CAFile, certFile, keyFile)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	args := append([]string{"manager"}, kubeadmFlags(kubeconfig, files.CAFile, files.CAKeyFile, files.CAFile, files.ServiceAccountKeyFile)...)
	log := &said{}
	signals := make(chan os.Signal, 1)
	w := &cli.World{
		Stdout: log, Stderr: log, Getenv: func(string) string { return "" },
		Signals: func() (<-chan os.Signal, func()) { return signals, func() {} },
	}
	ended := make(chan int, 1)
	go func() { ended <- run(t.Context(), w, append(args, "--secure-port="+port)) }()

	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	until := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(controlplanetest.Patience); !f(); time.Sleep(50 * time.Millisecond) {
			select {
			case status := <-ended:
				t.Fatalf("it ended with %d: %s", status, log)
			default:
			}
			if time.Now().After(end) {
				t.Fatalf("waited in vain for %s: %s", what, log)
			}
		}
	}
	kubectl("create", "configmap", "cluster-info", "-n", "kube-public", "--from-literal=kubeconfig=how to get here")
	kubectl("create", "secret", "generic", "bootstrap-token-abcdef", "-n", "kube-system", "--type=bootstrap.kubernetes.io/token",
		"--from-literal=token-id=abcdef", "--from-literal=token-secret=0123456789abcdef", "--from-literal=usage-bootstrap-signing=true")
	kubectl("create", "secret", "generic", "bootstrap-token-000000", "-n", "kube-system", "--type=bootstrap.kubernetes.io/token",
		"--from-literal=token-id=000000", "--from-literal=token-secret=0123456789abcdef", "--from-literal=expiration=2020-01-01T00:00:00Z")
	kubectl("create", "deployment", "pair", "--image=web", "--replicas=2")
	kubectl("apply", "-f", "../../docs/first-minute.yaml")
	daemonSet := filepath.Join(t.TempDir(), "daemonset.yaml")
	if err := os.WriteFile(daemonSet, []byte("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, "+
		"template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: agent}]}}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("create", "-f", daemonSet)
	for object, ready := range map[string]string{"daemonset/agent": "numberReady", "statefulset/db": "readyReplicas", "job/import": "succeeded"} {
		until(object, func() bool { return kubectl("get", object, "-o", "jsonpath={.status."+ready+"}") > "0" })
	}
	until("the signature", func() bool {
		return strings.HasPrefix(kubectl("get", "configmap", "cluster-info", "-n", "kube-public", "-o", "jsonpath={.data.jws-kubeconfig-abcdef}"), "eyJ")
	})
	until("the end of the token", func() bool {
		return kubectl("get", "secret", "bootstrap-token-000000", "-n", "kube-system", "--ignore-not-found") == ""
	})
	until("two Pods that run", func() bool {
		return kubectl("get", "deployment", "pair", "-o", "jsonpath={.status.readyReplicas}") == "2"
	})
	until("the event", func() bool {
		return kubectl("get", "events.events.k8s.io", "-o", "jsonpath={.items[?(@.reportingController=='deployment-controller')].reason}") != ""
	})
	manifest := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: Node, metadata: {name: joins}, spec: {unschedulable: true}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("create", "-f", manifest)
	until("the range of a Node that joins", func() bool {
		return kubectl("get", "node", "joins", "-o", "jsonpath={.spec.podCIDR} {.spec.podCIDRs}") == `10.244.0.0/24 ["10.244.0.0/24"]`
	})
	if who := kubectl("get", "lease", "kube-controller-manager", "-n", "kube-system", "-o", "jsonpath={.spec.holderIdentity}"); who == "" {
		t.Error("nobody holds the lease")
	}

	adminFile, adminKeyFile := clientCertificate(t, files.CAFile, files.CAKeyFile, pkix.Name{CommonName: "root", Organization: []string{"system:masters"}})
	admin, err := tls.LoadX509KeyPair(adminFile, adminKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		certificates []tls.Certificate
		code         int
	}{{[]tls.Certificate{admin}, http.StatusOK}, {nil, http.StatusUnauthorized}} {
		browser := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: test.certificates}, DisableKeepAlives: true} //nolint:gosec // the certificate is self-made
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := browser.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != test.code {
			t.Errorf("with %d certificates: %d %.200s", len(test.certificates), response.StatusCode, page)
		}
	}
	signals <- syscall.SIGTERM
	select {
	case status := <-ended:
		if status != 0 {
			t.Errorf("it ended with %d: %s", status, log)
		}
	case <-time.After(controlplanetest.Patience):
		t.Fatalf("it did not end within %s of the signal: %s", controlplanetest.Patience, log)
	}
	for text, want := range map[string]int{"accepted without effect": 1, "gave a node the ranges of its pods": 1} {
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("the log has %q %d times, want %d: %s", text, got, want, log)
		}
	}
	for line := range strings.Lines(log.String()) {
		for _, bad := range []string{"forbidden", "lack a right", "eyJ", "0123456789abcdef"} {
			if strings.Contains(line, bad) {
				t.Errorf("%s: %s", bad, line)
			}
		}
	}
}
