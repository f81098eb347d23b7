package ablation

import "sync"

var one sync.Mutex

// Transaction begins the only transaction that there is, if that is asked for, and returns what ends it. flush makes
// all that was committed durable.
func Transaction(flush func() error) (end func()) {
	if !On(OneLock) && !On(NoGroupCommit) {
		return func() {}
	}
	one.Lock()
	return func() {
		if On(NoGroupCommit) {
			flush() // of an error all later ones tell, too
		}
		one.Unlock()
	}
}
