// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/connections"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/traces"
)

// Runnable is what a manager runs.
type Runnable = controller.Runnable

// shutdownTime is the default of ShutdownTimeout: less than the 30 s after which
// Kubernetes kills a Pod that was asked to end.
const shutdownTime = 16 * time.Second

// Manager is a process of controllers. Its methods are safe for concurrent use.
type Manager struct {
	client   *client.Client // of controllers: writes while the lease is held
	own      *client.Client // of the lease alone
	config   *rest.Config   // as it was given
	factory  *cache.Factory
	log      *slog.Logger
	instance string
	options  []client.Option
	shutdown time.Duration
	resync   time.Duration // see Resync

	decoded int64 // see DecodedBudget

	runs      *runs.Record // nil: runs are not recorded
	runsBytes int
	kinds     kinds // for the rights of users who see runs

	recordFile string           // see RunRecordFile
	traces     *traces.Exporter // nil: runs are not traced

	startInterval   time.Duration
	disabledMetrics []string
	aliases         map[string]string // see Aliases

	servings []asked
	below    []below       // handlers of HandleBelow
	election *lease.Config // of the option
	elector  *lease.Elector
	fence    fence
	second   *secondLease // nil: there is none

	keepLease bool
	written   written
	phase     atomic.Value  // string: what the process does, for people
	elected   chan struct{} // see Elected
	answered  atomic.Bool   // the server has
	health    *serving.Health
	before    atomic.Pointer[map[string]object.Version] // what the leader before wrote last, by kind; nil: none that is known
	stop      atomic.Pointer[stop]                      // nil: Run has not been called

	mu        sync.Mutex
	parts     []Runnable
	recorders []recorder
	running   bool
}

// recorder is a recorder of events and the name of their source.
type recorder struct {
	*events.Recorder
	name string
}

// An Option changes a manager in the making.
type Option func(*Manager)

// Log is the logger of the manager and of its controllers. The default is slog.Default.
func Log(l *slog.Logger) Option { return func(m *Manager) { m.log = cmp.Or(l, slog.Default()) } }

// Instance names this process in the events it records. The default is the
// host's name.
func Instance(name string) Option { return func(m *Manager) { m.instance = name } }

// ShutdownTimeout is how long the manager may take to stop, in all. When it is over, Run
// returns an error that names what has not ended. The default is 16 s: 12 s for controllers,
// 2 s for the events that wait to be written, 1.5 s for releasing the lease, and the rest for
// informers and serving. Below 8 s controllers have half of the limit.
func ShutdownTimeout(d time.Duration) Option { return func(m *Manager) { m.shutdown = d } }

// Aliases has /debug/controllers take other names of controllers, which lead to their own.
func Aliases(names map[string]string) Option { return func(m *Manager) { m.aliases = names } }

// ClientOptions are those of the manager's client.
func ClientOptions(options ...client.Option) Option {
	return func(m *Manager) { m.options = append(m.options, options...) }
}

// RunRecord is how many bytes the record of the controllers' runs may take; 0 switches it off. The default is
// runs.DefaultBytes. The record takes memory as it fills.
func RunRecord(bytes int) Option { return func(m *Manager) { m.runsBytes = bytes } }

// DecodedBudget is how many bytes of decoded objects the manager's informers keep for readers; with 0 they keep only
// those that were decoded last. The default is cache.DefaultDecodedBudget. docs/cache.md says how to choose.
func DecodedBudget(bytes int64) Option { return func(m *Manager) { m.decoded = bytes } }

// New returns a manager that works against the server of config. It does not
// connect.
func New(config *rest.Config, options ...Option) (*Manager, error) {
	m := &Manager{config: config, log: slog.Default(), shutdown: shutdownTime, runsBytes: runs.DefaultBytes, decoded: cache.DefaultDecodedBudget, elected: make(chan struct{})}
	m.phase.Store("not running")
	for _, option := range options {
		option(m)
	}
	if m.instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("making a manager: finding the host's name: %w; give manager.Instance", err)
		}
		m.instance = host
	}
	var err error
	var leading *lease.Config
	if m.own, err = client.New(connections.Apart(connections.OneByOne(config)), m.options...); err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	if m.client, err = m.newClient(config); err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	m.factory = cache.NewFactory(m.client, m.log, cache.DecodedBudget(m.decoded))
	m.kinds.discover = m.client.Discover
	if m.runsBytes != 0 {
		if m.runs, err = runs.New(m.runsBytes); err != nil {
			return nil, fmt.Errorf("making a manager: %w", err)
		}
	}
	m.traceRuns()
	m.written.server = m.client.Server()
	if m.election != nil {
		c := *m.election
		c.Log = m.log
		if c.Identity == "" {
			c.Identity = identity(m.instance)
		}
		if m.elector, err = lease.New(m.own, c); err != nil {
			return nil, fmt.Errorf("making a manager: %w", err)
		}
		leading = &c
	}
	if m.second != nil {
		if err := m.second.prepare(m, leading); err != nil {
			return nil, fmt.Errorf("making a manager: %w", err)
		}
	}
	m.health = serving.NewHealth(m.log)
	for i := range m.servings {
		if err := m.prepare(&m.servings[i]); err != nil {
			return nil, fmt.Errorf("making a manager: %w", err)
		}
	}
	return m, nil
}

// newClient returns a client with the credentials of config that writes only while the
// lease is held.
func (m *Manager) newClient(config *rest.Config) (*client.Client, error) {
	if m.election != nil {
		config = rest.CopyConfig(config)
		// Below what config brings along, which may take time: the fence is the last.
		config.WrapTransport = transport.Wrappers(m.fence.wrap, config.WrapTransport)
	}
	return client.New(config, m.options...)
}

// Client returns the manager's client.
func (m *Manager) Client() *client.Client { return m.client }

// Config returns a copy of the configuration with which the manager was made.
func (m *Manager) Config() *rest.Config { return rest.CopyConfig(m.config) }

// InformerFactory makes the manager a cache.Provider.
func (m *Manager) InformerFactory() *cache.Factory { return m.factory }

// Runs returns the record of the runs of the manager's controllers, or nil if it is switched off.
func (m *Manager) Runs() *runs.Record { return m.runs }

// Logger returns the manager's logger.
func (m *Manager) Logger() *slog.Logger { return m.log }

// Recorder returns a recorder of events that name a controller as their source.
// It must be called before Run.
func (m *Manager) Recorder(name string) *events.Recorder { return m.recorder(m.client, name) }

func (m *Manager) recorder(c *client.Client, name string) *events.Recorder {
	r := events.NewRecorder(c, name, name+"-"+m.instance, m.log)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recorders = append(m.recorders, recorder{r, name})
	return r
}

// Add has the manager run a part. It is an error while the manager runs, for a part without
// a name or with that of another part, and for a controller that could never run: one without
// a source of keys, or with controller.Owns and no controller.For. The metrics of a part that is a prometheus.Collector are
// served with those of the manager. A controller logs to the manager's logger, unless it
// was given one of its own.
func (m *Manager) Add(r Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return fmt.Errorf("adding %s to the manager: it is running already", r.Name())
	}
	if r.Name() == "" {
		return errors.New("adding a part to the manager: it has no name")
	}
	for _, other := range m.parts {
		if other.Name() == r.Name() {
			return fmt.Errorf("adding %s to the manager: there is a part of that name", r.Name())
		}
	}
	if c, ok := r.(interface{ Bind(controller.Host) error }); ok { // a loop, or several that are joined
		if err := c.Bind(m); err != nil {
			return fmt.Errorf("adding %s to the manager: %w", r.Name(), err)
		}
	}
	partOf := map[string]string{} // by the names of loops
	for _, part := range append(slices.Clone(m.parts), r) {
		for _, l := range loopsOf(part) {
			if other, taken := partOf[l.Name()]; taken {
				return fmt.Errorf("adding %s to the manager: %s has a loop named %s too", r.Name(), other, l.Name())
			}
			partOf[l.Name()] = part.Name()
		}
	}
	m.parts = append(m.parts, r)
	return nil
}
