// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
)

const (
	// serviceRange and serviceIssuer are kubeadm's defaults (networking
	// .serviceSubnet and the service-account issuer, v1.37); serviceIP is the
	// first address of the range, which the Service "kubernetes" gets.
	serviceRange  = "10.96.0.0/12"
	serviceIP     = "10.96.0.1"
	serviceIssuer = "https://kubernetes.default.svc.cluster.local"

	// serviceRange6 is the second range of a dual-stack cluster, from the local
	// addresses of RFC 4193: that of kind (DefaultClusterServiceSubnet).
	serviceRange6 = "fd00:10:96::/112"

	// A stopping server ends watches within watchGrace and its connections
	// within connectionGrace after that; requests that are not long-running
	// are waited for beforehand.
	watchGrace      = 500 * time.Millisecond
	connectionGrace = 500 * time.Millisecond

	readyPoll = 20 * time.Millisecond
)

// buildMu serializes the construction of API servers and schedulers: it sets
// process-wide variables of Kubernetes.
var buildMu sync.Mutex

// apiServer is one run of a kube-apiserver.
type apiServer struct {
	name     string
	url      string
	listener *trackingListener
	cancel   context.CancelFunc
	done     chan struct{} // closed when the run has ended
	err      error         // why it ended; read after done
}

// startAPIServer starts a server on the listener, which it then owns. The
// server does not answer yet: see waitReady.
func startAPIServer(name string, l *trackingListener, url string, p *pki, etcdEndpoint string, o *Options) (*apiServer, error) {
	server, err := buildAPIServer(l, p, etcdEndpoint, o)
	if err != nil {
		l.closeAll()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &apiServer{name: name, url: url, listener: l, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer l.closeAll()
		prepared, err := server.PrepareRun()
		if err == nil {
			err = prepared.Run(ctx)
		}
		s.err = err
	}()
	return s, nil
}

// stop ends the server and waits for it. Requests in flight are finished until
// patience ends, then cut; watches are ended, connections closed. When ctx ends
// first, the server is left behind.
func (s *apiServer) stop(ctx, patience context.Context) error {
	s.cancel()
	select {
	case <-s.done:
	case <-patience.Done():
		s.listener.cutAll()
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("stopping %s: %w", s.name, context.Cause(ctx))
	}
	if s.err != nil {
		return fmt.Errorf("stopping %s: %w", s.name, s.err)
	}
	return nil
}

// waitReady returns when the server says that it is ready and the default
// namespace exists.
func (s *apiServer) waitReady(ctx context.Context, p *pki, admin keyPair) error {
	client, err := s.probeClient(p, admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var last error
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		for {
			if last = s.probe(ctx, client, path); last == nil {
				break
			}
			select {
			case <-time.After(readyPoll):
			case <-s.done:
				return fmt.Errorf("%s ended while starting: %w", s.name, errors.Join(s.err, last))
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s: %w; last answer: %w", s.name, context.Cause(ctx), last)
			}
		}
	}
	return nil
}

func (s *apiServer) probeClient(p *pki, admin keyPair) (*http.Client, error) {
	pair, err := tls.X509KeyPair(admin.certPEM, admin.keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(p.cluster.cert)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:      roots,
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
	}}}, nil
}

func (s *apiServer) probe(ctx context.Context, client *http.Client, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

func buildAPIServer(l *trackingListener, p *pki, etcdEndpoint string, o *Options) (*aggregator.APIAggregator, error) {
	buildMu.Lock()
	defer buildMu.Unlock()
	s := apiServerOptions(l, p, etcdEndpoint)
	if o.DualStack {
		s.ServiceClusterIPRanges += "," + serviceRange6
	}
	s.APIEnablement.RuntimeConfig = maps.Clone(o.RuntimeConfig)
	completed, err := s.Complete(context.Background())
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, err
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, err
	}
	server, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, err
	}
	server.GenericAPIServer.ShutdownTimeout = connectionGrace
	return server, nil
}

// apiServerOptions configure a server as kubeadm does, unless there is a reason against
// it.
func apiServerOptions(l *trackingListener, p *pki, etcdEndpoint string) *options.ServerRunOptions {
	s := options.NewServerRunOptions()
	address := l.Addr().(*net.TCPAddr)

	s.SecureServing.Listener = l
	s.SecureServing.BindAddress = address.IP
	s.SecureServing.BindPort = address.Port
	s.SecureServing.ServerCert.CertKey.CertFile = p.certFile("apiserver")
	s.SecureServing.ServerCert.CertKey.KeyFile = p.keyFile("apiserver")
	s.GenericServerRunOptions.AdvertiseAddress = advertised(address.IP)
	s.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchGrace

	s.Etcd.StorageConfig.Transport.ServerList = []string{etcdEndpoint}

	s.Authentication.ClientCert.ClientCA = p.certFile("ca")
	s.Authentication.RequestHeader.ClientCAFile = p.certFile("front-proxy-ca")
	s.Authentication.RequestHeader.AllowedNames = []string{frontProxyClient}
	s.Authentication.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	s.Authentication.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	s.Authentication.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	s.ProxyClientCertFile = p.certFile(frontProxyClient)
	s.ProxyClientKeyFile = p.keyFile(frontProxyClient)
	s.Authentication.ServiceAccounts.Issuers = []string{serviceIssuer}
	s.Authentication.ServiceAccounts.KeyFiles = []string{p.keyFile("sa")}
	s.ServiceAccountSigningKeyFile = p.keyFile("sa")

	s.Authorization.Modes = []string{"Node", "RBAC"}
	s.Admission.GenericAdmission.EnablePlugins = []string{"NodeRestriction"}

	s.KubeletConfig.TLSClientConfig.CAFile = p.certFile("ca")
	s.KubeletConfig.TLSClientConfig.CertFile = p.certFile(kubeletClient)
	s.KubeletConfig.TLSClientConfig.KeyFile = p.keyFile(kubeletClient)
	s.KubeletConfig.PreferredAddressTypes = kubeletAddresses

	s.AllowPrivileged = true
	s.ServiceClusterIPRanges = serviceRange
	// The Service "kubernetes" gets no endpoints: validation rejects loopback
	// addresses in them, and simulated Pods have no network to reach any.
	s.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)
	return s
}

// advertised is the address under which a server announces itself to others. With an
// unspecified one Kubernetes reads the routing table, which fails on a machine without a
// network.
func advertised(bind net.IP) net.IP {
	if bind.IsUnspecified() {
		return net.ParseIP(DefaultBindAddress)
	}
	return bind
}
