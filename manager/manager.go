// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
)

// Runnable is what a manager runs.
type Runnable = controller.Runnable

// eventFlush is how long events that wait are still written when the manager
// stops.
const eventFlush = 2 * time.Second

// Manager is a process of controllers. Its methods are safe for concurrent use.
type Manager struct {
	client   *client.Client
	factory  *cache.Factory
	log      *slog.Logger
	instance string
	options  []client.Option

	mu        sync.Mutex
	parts     []Runnable
	recorders []*controller.Recorder
	running   bool
}

// An Option changes a manager in the making.
type Option func(*Manager)

// Log gives the manager a logger. The default is slog.Default.
func Log(l *slog.Logger) Option { return func(m *Manager) { m.log = l } }

// Instance names this process in the events it records. The default is the
// host's name.
func Instance(name string) Option { return func(m *Manager) { m.instance = name } }

// ClientOptions are those of the manager's client.
func ClientOptions(options ...client.Option) Option {
	return func(m *Manager) { m.options = append(m.options, options...) }
}

// New returns a manager that works against the server of config. It does not
// connect.
func New(config *rest.Config, options ...Option) (*Manager, error) {
	m := &Manager{log: slog.Default()}
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
	c, err := client.New(config, m.options...)
	if err != nil {
		return nil, fmt.Errorf("making a manager: %w", err)
	}
	m.client = c
	m.factory = cache.NewFactory(c, m.log)
	return m, nil
}

// Client returns the manager's client.
func (m *Manager) Client() *client.Client { return m.client }

// Informers makes the manager a cache.Provider.
func (m *Manager) Informers() *cache.Factory { return m.factory }

// Logger returns the manager's logger.
func (m *Manager) Logger() *slog.Logger { return m.log }

// Recorder returns a recorder of events that name a controller as their source.
// It must be asked for before Run.
func (m *Manager) Recorder(name string) *controller.Recorder {
	r := controller.NewRecorder(m.client, name, name+"-"+m.instance, m.log)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recorders = append(m.recorders, r)
	return r
}

// Add has the manager run a part. It is an error while the manager runs, and with
// a name that another part has.
func (m *Manager) Add(r Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running {
		return fmt.Errorf("adding %s to the manager: it is running already", r.Name())
	}
	for _, other := range m.parts {
		if other.Name() == r.Name() {
			return fmt.Errorf("adding %s to the manager: there is a part of that name", r.Name())
		}
	}
	m.parts = append(m.parts, r)
	return nil
}

// Run works until ctx ends or a part fails for good, and returns when nothing of
// the manager runs any more. The error is that of the part; the end of ctx is none.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.running {
		m.mu.Unlock()
		return errors.New("running the manager: it has been run before")
	}
	m.running = true
	parts, recorders := m.parts, m.recorders
	m.mu.Unlock()

	if err := m.waitForServer(ctx); err != nil {
		return nil // asked to stop before there was anything to do
	}

	// Three groups that stop one after the other: who works, who tells of it,
	// and who tells them of the world.
	partsCtx, stopParts := context.WithCancelCause(ctx)
	defer stopParts(nil)
	recordersCtx, stopRecorders := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecorders()
	informersCtx, stopInformers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopInformers()

	var informing, recording, working sync.WaitGroup
	informing.Go(func() { _ = m.factory.Run(informersCtx) })
	for _, r := range recorders {
		recording.Go(func() { r.Run(recordersCtx, eventFlush) })
	}
	for _, part := range parts {
		working.Go(func() {
			if err := part.Run(partsCtx); err != nil {
				stopParts(fmt.Errorf("%s: %w", part.Name(), err))
			}
		})
	}
	working.Wait()
	<-partsCtx.Done() // without parts there is still something to wait for
	stopRecorders()
	recording.Wait()
	stopInformers()
	informing.Wait()
	if ctx.Err() == nil {
		return context.Cause(partsCtx)
	}
	return nil
}

// How often a server that does not answer is asked again.
const (
	askFirst = 250 * time.Millisecond
	askMost  = 5 * time.Second
)

// waitForServer waits until the server answers, and says once for each reason
// what it waits for. A server that answers with a refusal answers: what is
// refused is for the controllers to find out.
func (m *Manager) waitForServer(ctx context.Context) error {
	said := ""
	for pause := askFirst; ; pause = min(2*pause, askMost) {
		ask, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := m.client.Request(http.MethodGet).Path("/version").Do(ask)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var advice string
		switch {
		case err == nil, apierrors.IsForbidden(err):
			if said != "" {
				m.log.Info("the server answers", "server", m.client.Server())
			}
			return nil
		case apierrors.IsUnauthorized(err):
			advice = "the server does not accept the credentials; are they of another cluster, or expired?"
		case client.Unreachable(err):
			advice = "the server cannot be reached; is it running, and is the address right?"
		default:
			advice = "the server does not answer as it should"
		}
		if advice != said {
			said = advice
			m.log.Warn("waiting for the server", "reason", advice, "server", m.client.Server(), "error", err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
