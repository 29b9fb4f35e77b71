// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// Two managers share the controllers of one cluster, and a third one stands by for one of them. The chain of causes goes
// through both managers: in "setpoint explain", in "setpoint ui", and in the page of each manager. The page of a manager
// shows to each user what the user may get.
func TestSeveralManagersAreOneStory(t *testing.T) {
	t.Parallel()
	cluster := controlplanetest.Start(t, controlplanetest.Options{Nodes: 1})
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const replicaSets = "setpoint-replicasets"
	first := runManager(t, cluster, "--controllers=deployment,serviceaccount,namespace")
	second := runManager(t, cluster, "--controllers=replicaset", "--leader-elect-resource-name="+replicaSets)
	for _, lease := range []string{"setpoint-manager", replicaSets} {
		controlplanetest.Eventually(t, lease+" says where a manager is", func() bool {
			out, err := cluster.Kubectl("get", "lease", lease, "-n", "kube-system", "-o", "jsonpath={.metadata.annotations}")
			return err == nil && strings.Contains(out, "setpoint.io/serves")
		})
	}
	standby := runManager(t, cluster, "--controllers=deployment,serviceaccount,namespace")

	kubectl("create", "namespace", "shop")
	kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2", "-n", "shop")
	kubectl("create", "secret", "generic", "hidden-key", "-n", "shop")
	kubectl("rollout", "status", "deployment/web", "-n", "shop", "--timeout=60s")
	chain := func(text string) bool {
		text = plainText(text)
		return strings.Contains(text, "deployment-controller, run ") && strings.Contains(text, "replicaset-controller, run ") && strings.Contains(text, "created Pod shop/web-")
	}

	t.Run("setpoint explain", func(t *testing.T) {
		answer := ""
		controlplanetest.Eventually(t, "the chain goes through both managers", func() bool {
			out, err := exec.Command("setpoint", "explain", "rs", replicaSetOf(cluster), "-n", "shop", "--kubeconfig", cluster.Kubeconfig).CombinedOutput()
			answer = string(out)
			return err == nil && chain(answer)
		})
		if created, pods := strings.Index(answer, "created ReplicaSet.apps"), strings.Index(answer, "created Pod shop/web-"); created < 0 || pods < created {
			t.Errorf("the answer is\n%s\nwant the ReplicaSet before its Pods", answer)
		}
	})
	t.Run("setpoint ui", func(t *testing.T) {
		browser := visitUI(t, cluster)
		body := browser.shows(t, "/o/apps/deployments/shop/web", chain)
		for _, link := range regexp.MustCompile(`href="([^"]+run=[^"]+)">(replicaset|deployment)-controller, run (\d+)</a>`).FindAllStringSubmatch(body, -1) {
			browser.shows(t, strings.ReplaceAll(link[1], "&amp;", "&"), func(body string) bool {
				return strings.Contains(body, "Run "+link[3]+" of "+link[2]+"-controller</h2>")
			})
		}
		browser.shows(t, "/", func(body string) bool {
			return strings.Contains(body, ">manager</th>") && strings.Count(plainText(body), "at 127.0.0.1:") >= 3 && strings.Contains(plainText(body), "replicaset-controller")
		})
		browser.shows(t, "/changes?namespace=shop", func(body string) bool {
			text := plainText(body)
			return strings.Contains(text, "created Pod shop/web-") && strings.Contains(text, "created ReplicaSet.apps shop/web-")
		})
	})
	for name, manager := range map[string]string{"the first manager": first, "the second manager": second, "the manager that stands by": standby} {
		t.Run("the page of "+name, func(t *testing.T) {
			admin := visitor{client: adminClient(t, cluster), base: manager + "/page"}
			admin.shows(t, "/o/apps/deployments/shop/web", chain)
			if name == "the manager that stands by" {
				admin.shows(t, "/", func(body string) bool {
					return strings.Contains(body, "This process does not work on anything now: standing by. The manager that leads is ") &&
						strings.Contains(body, "The loops and the runs are those of the managers that work.")
				})
			}
		})
	}
	t.Run("a manager of a newer version", func(t *testing.T) {
		newer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"format": 99, "runs": {"by": "number"}}`) // the client sees what is missing
		}))
		t.Cleanup(newer.Close)
		lease := filepath.Join(t.TempDir(), "lease.json")
		text := fmt.Sprintf(`{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "newer", "namespace": "kube-system",
			"labels": {"setpoint.io/announced": "true"}, "annotations": {"setpoint.io/serves": %q, "setpoint.io/certificate": "%x"}}}`,
			newer.URL, sha256.Sum256(newer.Certificate().Raw))
		if err := os.WriteFile(lease, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		kubectl("create", "-f", lease)
		defer kubectl("delete", "-f", lease)
		out, err := exec.Command("setpoint", "explain", "deploy/web", "-n", "shop", "--kubeconfig", cluster.Kubeconfig).CombinedOutput()
		want := "the manager at " + newer.URL + " is of a newer version: its record has format 99"
		if _, unknown, _ := strings.Cut(string(out), "NOT KNOWN\n"); err != nil || !strings.Contains(unknown, want) || !strings.Contains(string(out), "deployment-controller, run ") {
			t.Errorf("the answer is %v\n%s\nwant what the other managers know, and %q", err, out, want)
		}
	})
	t.Run("two users with different rights", func(t *testing.T) {
		kubectl("create", "clusterrole", "sees-the-page", "--verb=get", "--non-resource-url=/page", "--non-resource-url=/page/*")
		users := map[string]visitor{}
		for _, user := range []string{"reader", "stranger"} {
			kubectl("create", "serviceaccount", user)
			kubectl("create", "clusterrolebinding", user, "--clusterrole=sees-the-page", "--serviceaccount=default:"+user)
			users[user] = visitor{client: &http.Client{Transport: bearer{trusting(), strings.TrimSpace(kubectl("create", "token", user))}}, base: first + "/page"}
		}
		kubectl("create", "role", "reads-the-shop", "--verb=get,list", "--resource=deployments.apps,replicasets.apps", "-n", "shop")
		kubectl("create", "rolebinding", "reader", "--role=reads-the-shop", "--serviceaccount=default:reader", "-n", "shop")

		reader, stranger := users["reader"], users["stranger"]
		object := reader.shows(t, "/o/apps/deployments/shop/web", func(body string) bool { return strings.Contains(body, "ReplicaSet") })
		if pods := kubectl("get", "pods", "-n", "shop", "-o", "jsonpath={.items[0].metadata.name}"); strings.Contains(plainText(object), pods) {
			t.Errorf("a user who may not get Pods reads the name of %s", pods)
		}
		if !strings.Contains(object, "Not shown, as you may not get them: Event, Pod") {
			t.Error("the view does not say that Pods are left out")
		}
		if code, body := stranger.get(t, "/o/apps/deployments/shop/web"); code != http.StatusForbidden || strings.Contains(body, "replicas") {
			t.Errorf("a user who may not get the Deployment gets %d\n%s", code, body)
		}
		if code, _ := reader.get(t, "/o/core/secrets/shop/hidden-key"); code != http.StatusForbidden {
			t.Errorf("a user who may not get the Secret gets %d", code)
		}
		for path, sees := range map[string][2]bool{ // whether the reader and the stranger read the name
			"/search?q=web": {true, false}, "/search?q=hidden": {false, false}, "/changes?namespace=shop": {true, false}, "/changes": {true, false},
		} {
			for i, user := range []visitor{reader, stranger} {
				code, body := user.get(t, path)
				_, main, _ := strings.Cut(body, "<main") // the search box repeats the text
				_, hits, _ := strings.Cut(main, "</h1>")
				text := plainText(hits)
				if code != http.StatusOK || strings.Contains(text, "web") != sees[i] || strings.Contains(text, "hidden-key") {
					t.Errorf("%s shows user %d (%d)\n%s", path, i, code, text)
				}
			}
		}
	})
}

// replicaSetOf returns the name of the first ReplicaSet of the shop.
func replicaSetOf(cluster *controlplanetest.Cluster) string {
	out, _ := cluster.Kubectl("get", "replicasets", "-n", "shop", "-o", "jsonpath={.items[0].metadata.name}") // without one there is no answer
	return out
}

// plainText returns a page without its elements.
func plainText(html string) string {
	return regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, "")
}

// runManager runs "setpoint manager" until the test ends, and returns the address of its pages.
func runManager(t *testing.T, cluster *controlplanetest.Cluster, args ...string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	manager := exec.Command("setpoint", append([]string{"manager", "--kubeconfig", cluster.Kubeconfig, "--bind-address=127.0.0.1", "--secure-port", port}, args...)...)
	manager.Stdout, manager.Stderr = log, log
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(manager.Process.Signal(syscall.SIGTERM), manager.Wait(), log.Close())
		if text, _ := os.ReadFile(log.Name()); err != nil || t.Failed() { // what can be read helps
			t.Errorf("the manager ended with %v and logged\n%s", err, text)
		}
	})
	return "https://127.0.0.1:" + port
}

// visitor reads pages.
type visitor struct {
	client *http.Client
	base   string
}

func (v visitor) get(t *testing.T, path string) (int, string) {
	t.Helper()
	answer, err := v.client.Get(v.base + path)
	if err != nil {
		return 0, err.Error() // the manager has not begun to serve
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// shows waits until a page is as a function says, and returns it.
func (v visitor) shows(t *testing.T, path string, holds func(body string) bool) string {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
		code, body := v.get(t, path)
		if code == http.StatusOK && holds(body) {
			return body
		}
		if time.Now().After(end) {
			t.Fatalf("%s%s is answered with %d and does not show what it should:\n%s", v.base, path, code, body)
		}
	}
}

// trusting accepts the certificates that managers make for themselves.
func trusting() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // of this test's managers
}

// bearer sends a token.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// adminClient shows the client certificate of the cluster's administrator.
func adminClient(t *testing.T, cluster *controlplanetest.Cluster) *http.Client {
	t.Helper()
	config := cluster.Config
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		certificate, err = tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	transport := trusting()
	transport.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	return &http.Client{Transport: transport}
}

// visitUI runs "setpoint ui" until the test ends, and returns the browser that has its cookie.
func visitUI(t *testing.T, cluster *controlplanetest.Cluster) visitor {
	t.Helper()
	ui := exec.Command("setpoint", "ui", "--no-open", "--kubeconfig", cluster.Kubeconfig)
	out, err := ui.StdoutPipe()
	if err == nil {
		err = ui.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ui.Process.Signal(os.Interrupt), ui.Wait()); err != nil {
			t.Errorf("setpoint ui ended with %v", err)
		}
	})
	said := make([]byte, 512)
	n, err := out.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	login, err := url.Parse(regexp.MustCompile(`http://\S+`).FindString(string(said[:n])))
	if err != nil {
		t.Fatal(err)
	}
	v := visitor{base: "http://" + login.Host}
	answer, err := http.Get(login.String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || len(answer.Cookies()) != 1 {
		t.Fatal(fmt.Errorf("the login is answered with %d", answer.StatusCode))
	}
	v.client = &http.Client{Transport: cookie{http.DefaultTransport, answer.Cookies()[0]}}
	return v
}

// cookie sends a cookie.
type cookie struct {
	http.RoundTripper
	cookie *http.Cookie
}

func (c cookie) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.AddCookie(c.cookie)
	return c.RoundTripper.RoundTrip(r)
}
