// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/published"
)

// startTimeout ends a start that hangs; on a busy machine one takes ten seconds.
const startTimeout = 2 * time.Minute

// abortGrace is how long an aborted Start waits for API servers to finish
// their start before it stops them. Some of kube-apiserver's start-up hooks
// end the whole process when the server goes away under them; all of them are
// done after one or two seconds.
const abortGrace = 15 * time.Second

// cutGrace is how long a stop still waits once connections were cut. What is
// left to do then takes a second or two, and ten times as long on a machine whose cores are taken.
const cutGrace = 30 * time.Second

// deathGrace bounds a stop after a component's death. An API server whose etcd is
// gone may wait for it for ever: the controller that renews its identity lease
// retries without end, and holds the lock that its own stop needs. An etcd that
// crashed misses a goroutine that its stop waits for.
const deathGrace = 8 * time.Second

// ControlPlane is a running control plane. Its methods are safe for concurrent
// use.
type ControlPlane struct {
	opts           Options
	dir            *dataDir
	releaseLog     func()
	pki            *pki
	admin          keyPair
	addresses      []*net.TCPAddr // by server
	kubeconfig     []byte
	kubeconfigFile string
	published      *published.File // nil: it is in the data directory, or not written yet

	mu        sync.Mutex // guards what follows, and serializes starts and stops
	etcd      *etcd
	servers   []*apiServer // nil while stopped
	scheduler *schedulerRun
	stopping  bool

	life context.Context // ends with the control plane
	end  context.CancelCauseFunc
}

// Start starts a control plane and returns when it is ready: every API server
// answers /readyz, the namespace "default" exists, and the scheduler schedules.
// ctx bounds the start alone; a control plane that runs ends with Stop. When
// Start fails, nothing is left running.
//
// Note that there is no controller manager: nothing makes ServiceAccounts,
// ReplicaSets' Pods or Endpoints, and new Nodes keep the taint
// node.kubernetes.io/not-ready until a client removes it.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	cp, err := start(ctx, opts, machine{now: time.Now, freeBytes: statfsFree})
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	return cp, nil
}

// machine is what tests replace: the clock and the disk.
type machine struct {
	now       func() time.Time
	freeBytes func(path string) (uint64, error)
}

func start(ctx context.Context, opts Options, m machine) (*ControlPlane, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{opts: opts, releaseLog: func() {}}
	cp.life, cp.end = context.WithCancelCause(context.Background())
	if cp.dir, err = openDataDir(opts.DataDir, m.freeBytes); err != nil {
		return nil, err
	}
	if err := cp.startAll(ctx, m); err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortGrace)
		defer cancel()
		if cp.life.Err() == nil {
			cp.settle(stopCtx)
		}
		return nil, errors.Join(err, cp.Stop(stopCtx))
	}
	return cp, nil
}

func (cp *ControlPlane) startAll(ctx context.Context, m machine) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer context.AfterFunc(cp.life, func() { giveUp(context.Cause(cp.life)) })()
	began := time.Now()
	progress := cp.progress(began)

	if cp.opts.Logger == nil {
		var err error
		if cp.opts.Logger, err = cp.dir.openLog(); err != nil {
			return err
		}
	}
	cp.releaseLog = logKubernetesTo(cp.opts.Logger)
	if err := setFeatureGates(cp.opts.FeatureGates); err != nil {
		return err
	}

	// A process that waits for the kubeconfig must not find that of an earlier start.
	if err := cp.placeKubeconfig(); err != nil {
		return err
	}
	listeners, err := cp.listen(ctx)
	if err != nil {
		return err
	}
	// startAPIServer takes its listener over; those it never saw are closed
	// here.
	unused := listeners
	defer func() {
		for _, l := range unused {
			l.closeAll()
		}
	}()

	if err := cp.makeCredentials(m.now); err != nil {
		return err
	}

	progress("etcd", Starting)
	if cp.etcd, err = startEtcd(ctx, cp.dir, cp.opts.Logger, cp.end); err != nil {
		return err
	}
	progress("etcd", Ready)

	for i, l := range listeners {
		progress(serverName(i), Starting)
		unused = listeners[i+1:]
		if cp.servers[i], err = cp.startServer(i, l); err != nil {
			return err
		}
	}
	if !cp.opts.DisableScheduler {
		progress("kube-scheduler", Starting)
		if cp.scheduler, err = buildScheduler(cp.dir.schedulerKubeconfig()); err != nil {
			return err
		}
	}
	for i, s := range cp.servers {
		if err := s.waitReady(ctx, cp.pki, cp.admin); err != nil {
			return err
		}
		progress(serverName(i), Ready)
	}
	if cp.scheduler != nil {
		if err := cp.scheduler.start(ctx); err != nil {
			return err
		}
		progress("kube-scheduler", Ready)
	}
	if cp.opts.KubeconfigFile == "" {
		return writeFile(cp.kubeconfigFile, cp.kubeconfig)
	}
	cp.published, err = published.Write(cp.kubeconfig, cp.kubeconfigFile, "setpoint-controlplane")
	return err
}

// placeKubeconfig settles where the kubeconfig goes and removes an old one.
func (cp *ControlPlane) placeKubeconfig() error {
	if cp.kubeconfigFile = cp.dir.kubeconfig(); cp.opts.KubeconfigFile != "" {
		var err error
		if cp.kubeconfigFile, err = filepath.Abs(cp.opts.KubeconfigFile); err != nil {
			return fmt.Errorf("placing the kubeconfig %s: %w", cp.opts.KubeconfigFile, err)
		}
		if _, err := os.Stat(filepath.Dir(cp.kubeconfigFile)); err != nil {
			return fmt.Errorf("placing the kubeconfig: %w; create the directory, or choose another file", err)
		}
	}
	return removeKubeconfig(cp.kubeconfigFile)
}

func (cp *ControlPlane) progress(began time.Time) func(component string, state State) {
	return func(component string, state State) {
		if cp.opts.Progress != nil {
			cp.opts.Progress(Event{Component: component, State: state, Elapsed: time.Since(began)})
		}
	}
}

func serverName(i int) string {
	if i == 0 {
		return "kube-apiserver"
	}
	return fmt.Sprintf("kube-apiserver-%d", i)
}

// listen opens the ports of all API servers, so that a taken one is an error before
// anything is started.
func (cp *ControlPlane) listen(ctx context.Context) ([]*trackingListener, error) {
	var listeners []*trackingListener
	for i := range cp.opts.APIServers {
		port := cp.opts.Port
		if port != 0 {
			port += i
		}
		l, err := listen(ctx, cp.opts.BindAddress, port)
		if err != nil {
			for _, l := range listeners {
				l.closeAll()
			}
			return nil, err
		}
		listeners = append(listeners, l)
		cp.addresses = append(cp.addresses, l.Addr().(*net.TCPAddr))
	}
	cp.servers = make([]*apiServer, cp.opts.APIServers)
	return listeners, nil
}

// makeCredentials opens the keys and writes the kubeconfig of the scheduler.
func (cp *ControlPlane) makeCredentials(now func() time.Time) error {
	names, err := servingNames(net.ParseIP(cp.opts.BindAddress))
	if err != nil {
		return err
	}
	if cp.pki, err = openPKI(cp.dir.pki, names, now); err != nil {
		return err
	}
	if cp.admin, err = cp.pki.client("setpoint-admin", "system:masters"); err != nil {
		return err
	}
	if cp.kubeconfig, err = encodeKubeconfig(cp.ServerURLs(), cp.pki.cluster.certPEM, cp.admin); err != nil {
		return err
	}
	scheduler, err := cp.pki.client("system:kube-scheduler")
	if err != nil {
		return err
	}
	data, err := encodeKubeconfig(cp.ServerURLs()[:1], cp.pki.cluster.certPEM, scheduler)
	if err != nil {
		return err
	}
	return writeFile(cp.dir.schedulerKubeconfig(), data)
}

// servingNames are the names and addresses in the serving certificate.
func servingNames(bind net.IP) ([]string, error) {
	names := []string{
		"localhost", "127.0.0.1", "::1", serviceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	if !bind.IsUnspecified() {
		return append(names, bind.String()), nil
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading this machine's name: %w", err)
	}
	names = append(names, hostname)
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("reading this machine's addresses: %w", err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			names = append(names, n.IP.String())
		}
	}
	return names, nil
}

func (cp *ControlPlane) startServer(i int, l *trackingListener) (*apiServer, error) {
	s, err := startAPIServer(serverName(i), l, cp.serverURL(i), cp.pki, cp.etcd.endpoint, &cp.opts)
	if err != nil {
		return nil, err
	}
	go func() {
		<-s.done
		cp.mu.Lock()
		defer cp.mu.Unlock()
		if !cp.stopping && cp.servers[i] == s {
			cp.end(fmt.Errorf("%s ended: %w", s.name, errors.Join(s.err, errors.New("it was not stopped"))))
		}
	}()
	return s, nil
}

// settle waits for servers that still start, see abortGrace.
func (cp *ControlPlane) settle(ctx context.Context) {
	for _, s := range cp.servers {
		if s != nil {
			// Ready or not, it is stopped next.
			_ = s.waitReady(ctx, cp.pki, cp.admin)
		}
	}
}

// Stop ends everything and waits for it: the scheduler, the API servers, etcd.
// The kubeconfig and a temporary data directory are removed. Requests in flight
// are finished until ctx ends, and then cut. An error names what could not be
// ended or removed. Stopping twice is harmless.
func (cp *ControlPlane) Stop(ctx context.Context) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopping {
		return nil
	}
	cp.stopping = true
	cp.end(ErrStopped)
	patience, noMorePatience := context.WithCancel(ctx)
	defer noMorePatience()
	ctx, cancel := extend(ctx)
	defer cancel()
	stopEtcd := sync.OnceValue(func() error {
		if cp.etcd == nil {
			return nil
		}
		return cp.etcd.stop(ctx)
	})
	if !errors.Is(cp.Err(), ErrStopped) {
		// Requests in flight may wait for the component that died, and so may
		// parts of the others.
		noMorePatience()
		bounded, cancel := context.WithTimeoutCause(ctx, deathGrace, fmt.Errorf("it may remain until this process ends, because %w", cp.Err()))
		defer cancel()
		ctx = bounded
		go stopEtcd() //nolint:errcheck // collected below
	}

	var errs []error
	if cp.scheduler != nil {
		errs = append(errs, cp.scheduler.stop(ctx))
	}
	stops := make(chan error)
	running := 0
	for _, s := range cp.servers {
		if s != nil {
			running++
			go func() { stops <- s.stop(ctx, patience) }()
		}
	}
	for range running {
		errs = append(errs, <-stops)
	}
	errs = append(errs, stopEtcd())
	switch {
	case cp.published != nil:
		errs = append(errs, cp.published.Remove())
	case cp.kubeconfig != nil && cp.opts.KubeconfigFile == "":
		errs = append(errs, removeOwnKubeconfig(cp.kubeconfigFile, cp.kubeconfig))
	}
	cp.releaseLog()
	return errors.Join(append(errs, cp.dir.close())...)
}

// extend returns a context that ends cutGrace after ctx does.
func extend(ctx context.Context) (context.Context, context.CancelFunc) {
	extended, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(cutGrace):
			cancel(fmt.Errorf("still running %s after connections were cut: %w", cutGrace, context.Cause(ctx)))
		case <-extended.Done():
		}
	})
	return extended, func() {
		release()
		cancel(context.Canceled)
	}
}

// Done is closed when the control plane has ended: because Stop was called, or because a
// component died, which is the error of Err. What is left running after a component's
// death ends with Stop, as far as it can: in rare cases parts of etcd or of an API server
// remain until the process ends, which Stop's error then says.
func (cp *ControlPlane) Done() <-chan struct{} { return cp.life.Done() }

// Err returns nil while the control plane runs, ErrStopped after Stop, and
// else which component died, and why.
func (cp *ControlPlane) Err() error { return context.Cause(cp.life) }

// StopServer stops API server i, counted from 0, while the others and etcd
// keep running. Requests in flight are finished until ctx ends, and then cut. The scheduler uses server 0. The server's port is free until
// StartServer.
func (cp *ControlPlane) StopServer(ctx context.Context, i int) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.checkServer(i); err != nil {
		return err
	}
	s := cp.servers[i]
	if s == nil {
		return nil
	}
	cp.servers[i] = nil
	extended, cancel := extend(ctx)
	defer cancel()
	return s.stop(extended, ctx)
}

// StartServer starts API server i again, at its earlier address, and returns
// when it is ready.
func (cp *ControlPlane) StartServer(ctx context.Context, i int) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.checkServer(i); err != nil {
		return err
	}
	if cp.servers[i] != nil {
		return nil
	}
	l, err := listen(ctx, cp.opts.BindAddress, cp.addresses[i].Port)
	if err != nil {
		return fmt.Errorf("starting %s again: %w", serverName(i), err)
	}
	s, err := cp.startServer(i, l)
	if err != nil {
		return err
	}
	cp.servers[i] = s
	return s.waitReady(ctx, cp.pki, cp.admin)
}

func (cp *ControlPlane) checkServer(i int) error {
	if cp.stopping {
		return fmt.Errorf("API server %d: the control plane is %w", i, ErrStopped)
	}
	if i < 0 || i >= len(cp.servers) {
		return fmt.Errorf("API server %d: there are %d, counted from 0", i, len(cp.servers))
	}
	return nil
}

// ServerURLs are the API servers' addresses, such as "https://127.0.0.1:40123".
func (cp *ControlPlane) ServerURLs() []string {
	urls := make([]string, len(cp.addresses))
	for i := range urls {
		urls[i] = cp.serverURL(i)
	}
	return urls
}

func (cp *ControlPlane) serverURL(i int) string {
	a := cp.addresses[i]
	return fmt.Sprintf("https://%s", &net.TCPAddr{IP: advertised(a.IP), Port: a.Port})
}

// AdminConfig connects to the first API server as a member of system:masters,
// who may do everything. The caller owns the result. It has no client-side
// rate limit.
func (cp *ControlPlane) AdminConfig() *rest.Config { return cp.ServerConfig(0) }

// ServerConfig is AdminConfig for API server i, counted from 0.
func (cp *ControlPlane) ServerConfig(i int) *rest.Config {
	return restConfig(cp.serverURL(i), cp.pki.cluster.certPEM, cp.admin)
}

// UserConfig connects to the first API server as a user of the given name and
// groups, with a client certificate issued now and valid for a year. The user
// may do what RBAC grants.
func (cp *ControlPlane) UserConfig(user string, groups ...string) (*rest.Config, error) {
	pair, err := cp.pki.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return restConfig(cp.serverURL(0), cp.pki.cluster.certPEM, pair), nil
}

// Kubeconfig is the content of KubeconfigFile. It holds the administrator's
// key. The caller owns the result.
func (cp *ControlPlane) Kubeconfig() []byte { return slices.Clone(cp.kubeconfig) }

// KubeconfigFile is the path of the administrator's kubeconfig, readable by
// its owner alone. The file exists until Stop.
func (cp *ControlPlane) KubeconfigFile() string { return cp.kubeconfigFile }

// DataDir is the absolute path of the data directory.
func (cp *ControlPlane) DataDir() string { return cp.dir.path }

// CAFile is the certificate authority of the API servers and their users, for
// a controller manager's --root-ca-file.
func (cp *ControlPlane) CAFile() string { return cp.pki.certFile("ca") }

// CAKeyFile is the private key of that authority, for a controller manager's
// --cluster-signing-key-file. A reader of this key can become any user of the cluster.
func (cp *ControlPlane) CAKeyFile() string { return cp.pki.keyFile("ca") }

// ServiceAccountKeyFile is the private key that signs service-account tokens,
// for a controller manager's --service-account-private-key-file.
func (cp *ControlPlane) ServiceAccountKeyFile() string { return cp.pki.keyFile("sa") }
