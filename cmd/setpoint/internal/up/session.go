// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/manage"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/internal/child"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/nodestate"
	"github.com/setpoint-io/setpoint/internal/published"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
)

// session is one life of a cluster, from its start to its end.
type session struct {
	w        *cli.World
	progress *progress
	command  *command // to run; nil: stay until a signal

	child  atomic.Pointer[child.Process]
	ready  child.Endpoints
	config *rest.Config

	stopManager context.CancelFunc
	managed     chan error      // one value when the manager has ended
	missing     []registry.Kind // whose controllers do not run
	kubeconfig  *published.File // where the user wants it; nil: nowhere
	page        *page.Private
}

// start starts everything, in the order in which one needs the other.
func (s *session) start(ctx context.Context, u *up, binary string, chosen []*controllers.Descriptor, log *slog.Logger) error {
	process, err := child.Start(ctx, u.childOptions(binary, func(p child.Progress) {
		if p.Ready {
			s.progress.end(u.describe(p.Component))
		} else {
			s.progress.begin(u.describe(p.Component))
		}
	}))
	if err != nil {
		return err
	}
	s.child.Store(process)
	s.ready = process.Endpoints()
	if err := loadConfig(s); err != nil {
		return err
	}

	managing := "manager of " + plural(len(manage.Startable(chosen)), "controller")
	s.progress.begin(managing)
	authority := controllers.KeyFiles{Cert: s.ready.CAFile, Key: s.ready.CAKeyFile}
	cluster, err := manage.ClusterOf(s.config, s.ready.ServiceAccountKeyFile, authority)
	if err != nil {
		return err
	}
	cluster.OneServer = true
	pages, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for \"setpoint explain\": %w", err)
	}
	options := []manager.Option{manager.Serve(pages, serving.Options{Authentication: serving.Authentication{ClientCAFile: s.ready.CAFile}})}
	if u.dataDir != "" {
		options = append(options, manager.RunRecordFile(filepath.Join(u.dataDir, "setpoint-runs")))
	}
	options = append(options, manage.Traces(u.w.Getenv, "setpoint-up", log)...)
	m, run, err := manage.New(s.config, chosen, cluster, log, options...)
	if err != nil {
		return errors.Join(err, pages.Close())
	}
	if err := m.Add(announce.New(m.Client(), pages.Addr(), log)); err != nil {
		return err
	}
	if s.page, err = addPage(ctx, m, log); err != nil {
		return err
	}
	if len(run) == 0 {
		return errors.New("none of the chosen controllers can run")
	}
	if s.missing, err = withoutController(ctx, m.Client(), chosen, run); err != nil {
		return err
	}
	if len(s.missing) > 0 {
		if err := m.Add(newMissing(m, s.missing)); err != nil {
			return err
		}
	}
	// The manager ends when the session says so, not with ctx: it is to be
	// stopped before the command's cluster is, and after the command.
	managerCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stopManager = cancel
	go func() { s.managed <- m.Run(managerCtx) }()
	if err := s.waitUntilUsable(ctx, u, run, m.Client()); err != nil {
		return err
	}
	if u.kubeconfig != "" {
		data, err := os.ReadFile(s.ready.Kubeconfig)
		if err != nil {
			return fmt.Errorf("writing the kubeconfig: %w", err)
		}
		if s.kubeconfig, err = published.Write(data, u.kubeconfig, "setpoint up"); err != nil {
			return err
		}
	}
	s.progress.end(managing)
	return nil
}

// addPage has the manager serve its page to the browser of this user.
func addPage(ctx context.Context, m *manager.Manager, log *slog.Logger) (*page.Private, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the page: %w", err)
	}
	h := page.New(page.Of(m), page.Options{Log: log})
	private, err := page.NewPrivate(l, h)
	if err == nil {
		err = m.Add(h) // the samples for its charts
	}
	if err == nil {
		err = m.Add(&pageServer{private, log})
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return private, nil
}

// pageServer is the part of the manager that serves the page.
type pageServer struct {
	*page.Private
	log *slog.Logger
}

// Name implements manager.Runnable.
func (*pageServer) Name() string { return "page server" }

// Run implements manager.Runnable. A page that cannot be served is no reason to end the cluster.
func (p *pageServer) Run(ctx context.Context) error {
	if err := p.Private.Run(ctx); err != nil {
		p.log.Warn("the page is not served any more", "error", err)
	}
	return nil
}

// plural is a number with what it counts.
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// waitUntilUsable waits until a Pod could be created and scheduled, as far as the
// chosen controllers see to that.
func (s *session) waitUntilUsable(ctx context.Context, u *up, run []*controllers.Descriptor, c *client.Client) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute has passed"))
	defer cancel()
	runs := func(name string) bool {
		return slices.ContainsFunc(run, func(d *controllers.Descriptor) bool { return d.Alias == name })
	}
	for {
		var err error
		missing := ""
		if runs("serviceaccount") {
			_, err = client.For[*corev1.ServiceAccount](c).Get(ctx, object.Key{Namespace: "default", Name: "default"})
			if apierrors.IsNotFound(err) {
				missing, err = "the default ServiceAccount", nil
			}
		}
		if missing == "" && err == nil && u.nodes > 0 && runs("nodelifecycle") {
			missing, err = unusableNode(ctx, c, u.nodes)
		}
		if missing == "" && err == nil && u.allocate {
			missing, err = nodeWithoutRange(ctx, c)
		}
		if missing == "" && err == nil {
			return nil
		}
		if err != nil {
			missing = err.Error()
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cluster to be usable: %s is missing: %w", missing, context.Cause(ctx))
		case err := <-s.managed:
			s.managed <- nil // for stop
			return fmt.Errorf("the manager ended: %w", err)
		case <-s.child.Load().Done():
			return fmt.Errorf("the control plane ended: %w", s.child.Load().Err())
		}
	}
}

// unusableNode says which node Pods cannot be scheduled to yet, "" if none.
func unusableNode(ctx context.Context, c *client.Client, want int) (string, error) {
	nodes, _, err := client.For[*corev1.Node](c).List(ctx, client.Selection{})
	if err != nil {
		return "", err
	}
	if len(nodes) < want {
		return fmt.Sprintf("node %d of %d", len(nodes)+1, want), nil
	}
	for _, node := range nodes {
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		if !nodestate.Ready(node) || tainted {
			return "readiness of node " + node.Name, nil
		}
	}
	return "", nil
}

// nodeWithoutRange says which node has no addresses for Pods yet, "" if none.
func nodeWithoutRange(ctx context.Context, c *client.Client) (string, error) {
	nodes, _, err := client.For[*corev1.Node](c).List(ctx, client.Selection{})
	if err != nil {
		return "", err
	}
	for _, node := range nodes {
		if len(node.Spec.PodCIDRs) == 0 {
			return "spec.podCIDRs of node " + node.Name, nil
		}
	}
	return "", nil
}

// path is where the user finds the kubeconfig.
func (s *session) path() string {
	if s.kubeconfig == nil {
		return s.ready.Kubeconfig
	}
	if path, err := filepath.Abs(s.kubeconfig.Path()); err == nil {
		return path
	}
	return s.kubeconfig.Path()
}

// say shows what to try next.
func (s *session) say(took time.Duration) {
	fmt.Fprint(s.w.Stderr, describeMissing(s.missing))
	if s.command != nil {
		return
	}
	kubectl := "kubectl"
	hint := ""
	if _, err := exec.LookPath(kubectl); err != nil {
		beside := filepath.Join(filepath.Dir(s.w.Executable), kubectl)
		if _, err := os.Stat(beside); err == nil {
			kubectl = beside
		} else {
			hint = "\n(There is no kubectl in PATH; \"make kubectl\" builds bin/kubectl.)\n"
		}
	}
	if working, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(working, kubectl); err == nil && filepath.IsAbs(kubectl) && !strings.HasPrefix(short, "..") {
			kubectl = short
		}
	}
	fmt.Fprintf(s.w.Stderr, `
The cluster is ready after %.1f s. Its kubeconfig is
  %s
%s
Try, in another terminal:
  export KUBECONFIG=%s
  %s create deployment web --image=nginx --replicas=10
  %s get pods --watch
%s
Ctrl-C stops everything.
`, took.Seconds(), s.path(), s.pageLine(), s.path(), kubectl, kubectl, hint)
}

// pageLine says where the page is. The address has a secret, which belongs on a terminal and not into a file.
func (s *session) pageLine() string {
	if !s.w.Terminal {
		return ""
	}
	return fmt.Sprintf(`
Its page shows what the controllers do, and why. For one browser, once:
  %s
`, s.page.Address())
}

// serve runs the command, or stays until ctx ends. A part that dies meanwhile is
// an error.
func (s *session) serve(ctx context.Context) error {
	if s.command == nil {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.managed:
			s.managed <- nil
			return fmt.Errorf("the manager ended: %w", err)
		case <-s.child.Load().Done():
			return fmt.Errorf("the control plane ended: %w", s.child.Load().Err())
		}
	}
	return s.command.run(ctx, s.path(), s.child.Load())
}

// kill ends everything at once.
func (s *session) kill() {
	if s.command != nil {
		s.command.signal(syscall.SIGKILL)
	}
	if process := s.child.Load(); process != nil {
		_ = process.Kill() // setpoint ends now, whatever becomes of the process
	}
}

// stop ends everything, in the opposite order of its start.
func (s *session) stop() error {
	var errs []error
	if s.kubeconfig != nil {
		errs = append(errs, s.kubeconfig.Remove())
	}
	if s.stopManager != nil {
		s.stopManager()
		select {
		case err := <-s.managed:
			errs = append(errs, err)
		case <-time.After(stopTime):
			errs = append(errs, errors.New("the manager does not stop"))
		}
	}
	if process := s.child.Load(); process != nil {
		select {
		case <-process.Done(): // its end has been said
		default:
			errs = append(errs, process.Stop())
		}
	}
	return errors.Join(errs...)
}
