// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// startDeadline bounds one start: it takes a fraction of a second, and on a machine that is
// busy with something else a few.
const startDeadline = time.Minute

// onlyOurs are the lines that setpoint starts with and kube-controller-manager does not, by
// a part of the line, with the reason.
var onlyOurs = map[string]string{
	"--requestheader-uid-headers=":                          "headers with the UID of a user may have any name",
	"'--kube-api-burst=0'":                                  "there is no limit of requests by default, and so no burst",
	"'--kube-api-burst=-1'":                                 "there is no limit of requests by default, and so no burst",
	"--log-json-":                                           "alpha options of logging need no gate, as they have no effect",
	"--log-text-":                                           "alpha options of logging need no gate, as they have no effect",
	"'--logging-format='":                                   "an empty format is the default one",
	"--logging-format=json --vmodule":                       "levels of files have no effect in any format",
	"cloud-node-lifecycle":                                  "controllers of 1.34 to 1.36 are known by name",
	"--concurrent-service-syncs":                            "a flag of 1.34 to 1.36",
	"--feature-gates=AllAlpha=true ":                        "gates that nothing here reads need not fit together",
	"--emulated-version=1.34 --feature-gates=AllAlpha=true": "gates that nothing here reads need not fit together",
	"--feature-gates=AtomicFIFO=false":                      "gates that nothing here reads need not fit together",
	"kube:PodDeletionCost=false,NodeLifecycleConditions":    "gates with and without the name of the component go together",
	"=LogarithmicScaleDown=":                                "a gate that only kube-controller-manager 1.34 to 1.36 knows",
	"=JobPodReplacementPolicy=":                             "a gate that only kube-controller-manager 1.34 to 1.36 knows",
	"SidecarContainers=true":                                "a gate that only kube-controller-manager 1.34 to 1.36 knows",
	"=RootlessControlPlane=":                                "a gate of kubeadm",
	"=InPlacePodVerticalScaling=false":                      "locked for others, and nothing here reads it",
	"--tls-cipher-suites=TLS_":                              "without a suite that HTTP/2 needs, HTTP/1.1 is served",
	"--tls-curve-preferences=1 ":                            "a number that Go does not know is never chosen",
}

// onlyTheirs are the lines that kube-controller-manager starts with and setpoint does not: lines
// with which kube-controller-manager ends as soon as it holds the lease.
var onlyTheirs = map[string]string{
	"'--allocate-node-cidrs=true'":                   "it needs --cluster-cidr",
	"--allocate-node-cidrs --cluster-cidr=nonsense ": "nonsense is no network",
}

// The real kube-controller-manager and setpoint manager get the same command lines. Neither
// has a server: a line is accepted once its process has read all flags and files, and is
// about to wait for the lease. Most verdicts of kube-controller-manager are those on record.
func TestWhateverStartsKubeControllerManagerStartsTheManager(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts several hundred processes, which -short leaves out")
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs an address for each process, which only Linux has")
	}
	theirs, ours := binary(t, "kube-controller-manager"), binary(t, "setpoint")
	lines := startLines(t, theirs)
	knowsTheGates(t, theirs)
	s := newStarts(t)
	began := time.Now()
	started := startAll(t, lines, sample(t, lines), func(i int, line string) result {
		return s.start(t, i, theirs, nil, line, "Attempting to acquire leader lease", "Golang settings")
	})
	if *update {
		r := record{versionOf(t, theirs), map[string]bool{}}
		for line, result := range started {
			r.accepts[line] = result.accepted
		}
		r.write(t, lines)
	}
	recorded := readRecord(t, theirs)
	recorded.check(t, lines, started)
	everyLine := map[string]bool{}
	for _, line := range lines {
		everyLine[line] = true
	}
	verdicts := startAll(t, lines, everyLine, func(i int, line string) result {
		return s.start(t, i, ours, []string{"manager"}, line, `"msg":"managing"`, `msg=managing`)
	})
	counts := map[[2]bool]int{}
	used := map[string]int{}
	for i, line := range lines {
		their, our := recorded.accepts[line], verdicts[line]
		counts[[2]bool{their, our.accepted}]++
		switch {
		case their && !our.accepted && reasonFor(line, onlyTheirs, used) == "":
			t.Errorf("%s\n  starts kube-controller-manager, and setpoint manager says\n  %s", line, our.said)
		case !their && our.accepted && reasonFor(line, onlyOurs, used) == "":
			now := s.start(t, i, theirs, nil, line, "Attempting to acquire leader lease", "Golang settings")
			t.Errorf("%s\n  starts setpoint manager, and kube-controller-manager says\n  %s", line, now.said)
		case !their && !our.accepted:
			t.Logf("both refuse %s\n  %s", line, our.said)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(onlyOurs)) {
		if used[part] == 0 {
			t.Errorf("no line with %s is accepted by setpoint alone: is the reason out of date?", part)
		}
		t.Logf("only setpoint accepts %d lines with %s: %s", used[part], part, onlyOurs[part])
	}
	t.Logf("%d starts of kube-controller-manager are as recorded", len(started))
	t.Logf("of %d command lines in %s, both accept %d, both refuse %d, setpoint alone accepts %d and refuses %d",
		len(lines), time.Since(began).Round(time.Second), counts[[2]bool{true, true}], counts[[2]bool{false, false}], counts[[2]bool{false, true}], counts[[2]bool{true, false}])
	if len(lines) < 500 {
		t.Errorf("%d lines, which is too few: does kube-controller-manager write its help in another way?", len(lines))
	}
}

// startAll starts a program with those of the lines that are chosen, some at a time, and
// returns what became of each.
func startAll(t *testing.T, lines []string, chosen map[string]bool, start func(i int, line string) result) map[string]result {
	t.Helper()
	var mu sync.Mutex
	results := map[string]result{}
	turns := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
	var tasks sync.WaitGroup
	for i, line := range lines {
		if !chosen[line] {
			continue
		}
		turns <- struct{}{}
		tasks.Go(func() {
			defer func() { <-turns }()
			is := start(i, line)
			mu.Lock()
			defer mu.Unlock()
			results[line] = is
		})
	}
	tasks.Wait()
	return results
}

// knowsTheGates holds that the table of gates has all that kube-controller-manager shows.
func knowsTheGates(t *testing.T, program string) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^ +kube:([A-Za-z0-9]+)=true`).FindAllSubmatch(text, -1)
	for _, gate := range shown {
		if err := known(string(gate[1])); err != nil {
			t.Errorf("%v; does make gates have to be run?", err)
		}
	}
	if len(shown) < 100 {
		t.Errorf("%d gates in the help, which is too few", len(shown))
	}
}

func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := controlplanetest.Binary(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// reasonFor returns the reason for a line, and counts what it is found by.
func reasonFor(line string, reasons map[string]string, used map[string]int) string {
	for _, part := range slices.Sorted(maps.Keys(reasons)) {
		if strings.Contains(" "+line+" ", part) {
			used[part]++
			return reasons[part]
		}
	}
	return ""
}

// result is what became of a start.
type result struct {
	accepted bool
	said     string // the last line, where it was not
}

// starts has what command lines name: files, and a port on which nobody else listens.
type starts struct{ places *strings.Replacer }

// newStarts makes them. The port stays taken at one address, so that the kernel gives it to
// nobody, and is free at the others of this machine.
func newStarts(t *testing.T) *starts {
	t.Helper()
	holder, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close() })
	_, port, err := net.SplitHostPort(holder.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := selfSigned(t)
	files := map[string]string{
		"cert": string(cert), "key": string(key), "empty": "",
		"kubeconfig": "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a}]}",
		"migration":  "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/v1alpha1\nleaderName: migration\nresourceLock: leases\ncontrollerLeaders: [{name: nodelifecycle, component: '*'}, {name: route, component: kube-controller-manager}]\n",
		"beta":       "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/v1beta1\nleaderName: migration\ncontrollerLeaders: []\n",
		"nameless":   "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/v1\ncontrollerLeaders: []\n",
		"labels":     "{\"workqueue_depth,name\": \"deployment\"}",
	}
	places := []string{"{port}", port, "{dir}", dir}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		places = append(places, "{"+name+"}", file)
	}
	return &starts{strings.NewReplacer(places...)}
}

// selfSigned makes a certificate of this machine, which is an authority as well, and its key.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// start runs a program with a line until it has said one of the marks, or ended. The line
// comes last, and overrules what stands before it: a kubeconfig, and no port. {serve} has it
// serve at an address of its own.
//
// The second mark of kube-controller-manager comes before the first, and counts only where it
// never says the first: without an election, or with one of another kind.
func (s *starts) start(t *testing.T, number int, program string, before []string, line string, marks ...string) result {
	t.Helper()
	address := fmt.Sprintf("127.1.%d.%d", number/250, number%250+1)
	full := s.places.Replace(strings.NewReplacer("{serve}", "--secure-port={port} --bind-address={address}").Replace(line))
	full = strings.ReplaceAll(full, "{address}", address)
	args := append(slices.Clone(before), strings.Fields(s.places.Replace("--kubeconfig={kubeconfig} --secure-port=0"))...)
	args = append(args, fields(full)...)
	if before == nil && !strings.Contains(line, "--leader-elect=false") && !strings.Contains(line, "CoordinatedLeaderElection=true") && !strings.Contains(line, "AllBeta=true") {
		marks = marks[:1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), startDeadline)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = t.TempDir()
	c.Env = []string{"HOME=" + c.Dir, "PATH=" + os.Getenv("PATH")}
	w := &markedOutput{marks: marks, found: cancel}
	c.Stdout, c.Stderr = w, w
	c.WaitDelay = time.Second
	err := c.Run()
	switch accepted, said := w.state(); {
	case accepted, err == nil:
		return result{accepted: true}
	case ctx.Err() != nil:
		t.Errorf("%s %s: neither started nor ended: %s", filepath.Base(program), line, said)
		return result{said: said}
	default:
		return result{said: said}
	}
}

// fields are those of a line. What stands in quotes is one, and may be empty.
func fields(line string) (all []string) {
	var field strings.Builder
	quoted, begun := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				all = append(all, field.String())
			}
			field.Reset()
			begun = false
		default:
			field.WriteRune(r)
			begun = true
		}
	}
	if begun {
		all = append(all, field.String())
	}
	return all
}

// markedOutput reads what a process says, until it has said a mark.
type markedOutput struct {
	marks []string
	found func()

	mu   sync.Mutex
	text bytes.Buffer
	seen bool
}

func (m *markedOutput) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text.Write(p)
	for _, mark := range m.marks {
		if !m.seen && bytes.Contains(m.text.Bytes(), []byte(mark)) {
			m.seen = true
			m.found()
		}
	}
	return len(p), nil
}

func (m *markedOutput) state() (seen bool, last string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := strings.TrimSpace(m.text.String())
	if at := strings.LastIndexByte(text, '\n'); at >= 0 && !strings.Contains(text, "Error:") {
		text = text[at+1:]
	}
	return m.seen, fmt.Sprintf("%.400s", text)
}
