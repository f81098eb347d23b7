package dtxn

// held counts the locks held by anybody.
func (s *System) held() int { return s.sys.Locks.Held() }
