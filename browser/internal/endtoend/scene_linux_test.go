// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
	"github.com/setpoint-io/setpoint/browser/internal/programs"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// The namespaces of the scene, and the Deployments in them.
const (
	shopping = "shop"   // of the tests that read
	outlet   = "outlet" // of the tests whose manager goes away
)

// scene is a real cluster with the programs that serve the page: "setpoint up" with all controllers apart from that of
// Deployments, "setpoint manager" with that one, and "setpoint ui" beside both. One serves all tests of the package.
type scene struct {
	setpoint, kubectl string
	ports             [2]int // of the manager
	up, manager, ui   *programs.Program

	ofUp, ofUI *chromium.Tab // the browsers that have the cookies
}

// deployments has the manager run the one controller. It announces itself on a Lease of its own.
var deployments = []string{"--controllers", "deployment", "--leader-elect=false", "--leader-elect-resource-name", "deployments"}

var theScene struct {
	sync.Mutex
	scene *scene
	err   error
}

// endScene ends the programs of the scene.
func endScene() error {
	s := theScene.scene
	if s == nil {
		return nil
	}
	var errs []error
	for _, p := range []*programs.Program{s.ui, s.manager, s.up} { // the cluster goes last
		if p != nil {
			errs = append(errs, p.End())
		}
	}
	return errors.Join(errs...)
}

// realScene returns the scene, which the first test starts.
func realScene(t *testing.T) *scene {
	t.Helper()
	browser := theBrowser(t)
	theScene.Lock()
	defer theScene.Unlock()
	if theScene.scene == nil {
		theScene.scene = &scene{}
		endings = append(endings, endScene)
		theScene.err = theScene.scene.start(context.WithoutCancel(t.Context()), browser) // it outlives the test
	}
	if theScene.err != nil {
		t.Fatal(theScene.err)
	}
	return theScene.scene
}

func (s *scene) start(ctx context.Context, browser *chromium.Browser) (err error) {
	for name, path := range map[string]*string{"setpoint": &s.setpoint, "kubectl": &s.kubectl} {
		if *path, err = controlplanetest.Binary(name); err != nil {
			return err
		}
	}
	if s.up, err = programs.Up(ctx, s.setpoint, "--nodes", "2", "--controllers", "*,-deployment"); err != nil {
		return err
	}
	if s.ports, err = freePorts(ctx); err != nil {
		return err
	}
	if err := s.startManager(ctx); err != nil {
		return err
	}
	if s.ui, err = programs.UI(ctx, s.setpoint, s.up.Kubeconfig()); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"create", "namespace", shopping},
		{"create", "namespace", outlet},
		{"--namespace", shopping, "wait", "--for=create", "serviceaccount/default", "--timeout=60s"},
		{"--namespace", outlet, "wait", "--for=create", "serviceaccount/default", "--timeout=60s"},
		{"--namespace", shopping, "create", "deployment", "web", "--image=nginx:1.28", "--replicas=3"},
		{"--namespace", outlet, "create", "deployment", "cart", "--image=nginx:1.28", "--replicas=1"},
		{"--namespace", shopping, "rollout", "status", "deployment/web", "--timeout=60s"},
	} {
		if err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	if s.ofUp, err = login(browser, s.up); err != nil {
		return err
	}
	s.ofUI, err = login(browser, s.ui)
	return err
}

// startManager starts the manager of Deployments, always at the same ports. It outlives the test.
func (s *scene) startManager(ctx context.Context) (err error) {
	s.manager, err = programs.Manager(context.WithoutCancel(ctx), s.setpoint, s.up.Kubeconfig(), s.ports[0], s.ports[1], deployments...)
	return err
}

// run runs kubectl in the cluster.
func (s *scene) run(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, s.kubectl, args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+s.up.Kubeconfig())
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// login opens a browser that gets the cookie of a program.
func login(browser *chromium.Browser, p *programs.Program) (*chromium.Tab, error) {
	tab, err := browser.Open()
	if err != nil {
		return nil, err
	}
	return tab, errors.Join(tab.Visit(p.Login), tab.Until("location.pathname === '/'"))
}

// freePorts returns two ports that no program has. A program may take one before it is used, as for every port that is
// chosen before.
func freePorts(ctx context.Context) (ports [2]int, err error) {
	for i := range ports {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return ports, err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// openBeside opens another tab of a browser at an address of a program. When the test ends, the tab must have
// requested nothing from other servers, and its console must have no errors.
func openBeside(t *testing.T, of *chromium.Tab, p *programs.Program, path string) *chromium.Tab {
	t.Helper()
	tab, err := of.Beside()
	must(t, err)
	t.Cleanup(tab.Close)
	t.Cleanup(func() { isQuiet(t, tab, p) })
	must(t, tab.Visit(p.Root+path))
	return tab
}

func isQuiet(t *testing.T, tab *chromium.Tab, p *programs.Program) {
	t.Helper()
	if foreign := tab.Foreign(p.Root); len(foreign) > 0 {
		t.Errorf("requests to other servers: %q", foreign)
	}
	if problems := tab.Problems(); len(problems) > 0 {
		t.Errorf("the console of the browser has %q", problems)
	}
}

// mark marks the page that a tab shows: a page that is loaded anew has no mark.
func mark(t *testing.T, tab *chromium.Tab) {
	t.Helper()
	_, err := chromium.Evaluate[int](tab, "window.marked = 1")
	must(t, err)
}

func isMarked(t *testing.T, tab *chromium.Tab) {
	t.Helper()
	if marked, err := chromium.Evaluate[bool](tab, "window.marked === 1"); err != nil || !marked {
		t.Errorf("the page was loaded anew, %v", err)
	}
}
